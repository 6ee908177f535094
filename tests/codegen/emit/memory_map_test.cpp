// SPDX-License-Identifier: Apache-2.0
// The map of a rank's memory covers the arena in the order of addresses, and says when values are live.
#include <doctest/doctest.h>

#include <rankc/codegen/lowered.hpp>
#include <rankc/plan/make_plan.hpp>
#include <rankc/rankc.hpp>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "emit/memory_map.hpp"

namespace memory_map_test {

using namespace rankc::codegen;

namespace {

std::string map_of(rankc::parallel_dims dims) {
  const rankc::plan_data plan = rankc::make_plan(
      "map", rankc::models::gpt2{.layers = 4, .hidden = 16, .heads = 4, .ffn = 32, .vocab = 64}, dims,
      rankc::schedules::one_f_one_b{2}, rankc::training{.seq = 8, .global_batch = 8, .precision = rankc::f32},
      rankc::clusters::cpu);
  REQUIRE(plan.diagnostics.empty());
  const lowered l = lower(plan, dtype::f32);
  return memory_map(l, l.ranks.back());
}

/// The addresses at the beginnings of the lines.
std::vector<long> addresses(const std::string& map) {
  std::vector<long> all;
  std::istringstream lines(map);
  std::string line;
  std::getline(lines, line);  // the title
  while (std::getline(lines, line)) {
    std::erase(line, '\'');
    all.push_back(std::atol(line.c_str() + 2));
  }
  return all;
}

bool has_line(const std::string& map, const std::string& name, const std::string& live) {
  const std::size_t at = map.find("  " + name + " ");
  return at != map.npos && map.substr(at, map.find('\n', at) - at).ends_with("  " + live);
}

}  // namespace

TEST_CASE("values are listed by address, each with its life") {
  const std::string map = map_of({.world = 2, .pp = 2});
  const std::vector<long> where = addresses(map);
  CHECK(where.size() > 8);
  CHECK(where.front() == 0);
  CHECK(std::ranges::is_sorted(where));
  CHECK(has_line(map, "weights", "always"));
  CHECK(has_line(map, "second_moment", "always"));
  CHECK(has_line(map, "gradients", "from the first backward to the update"));
  CHECK(has_line(map, "1 x saved", "from a forward to its backward"));
  CHECK(has_line(map, "targets", "in a step"));
  CHECK(has_line(map, "work", "in a layer"));
  CHECK(map.find("gathered") == map.npos);
}

TEST_CASE("gathered weights live as long as their layer where the plan reshards after layers") {
  CHECK(has_line(map_of({.world = 2, .dp_shard = 2}), "gathered", "from a layer's gather to its end"));
  CHECK(has_line(map_of({.world = 2, .dp_shard = 2, .reshard = rankc::reshard::after_step}), "gathered",
                 "in a step"));
}

}  // namespace memory_map_test
