// SPDX-License-Identifier: Apache-2.0
// The tables of a program name each kind of layer once, and pipeline coordinates share equal tables.
#include <doctest/doctest.h>

#include <rankc/codegen/lowered.hpp>
#include <rankc/plan/make_plan.hpp>
#include <rankc/rankc.hpp>

#include <algorithm>
#include <map>

#include "emit/layouts.hpp"
#include "emit/parameter_blocks.hpp"

namespace layouts_test {

using namespace rankc::codegen;

namespace {

rankc::plan_data deep(int layers, int pp) {
  return rankc::make_plan(
      "deep", rankc::models::gpt2{.layers = layers, .hidden = 16, .heads = 4, .ffn = 32, .vocab = 64},
      {.world = pp, .pp = pp}, rankc::schedules::one_f_one_b{2},
      rankc::training{.seq = 8, .global_batch = 2, .precision = rankc::f32}, rankc::clusters::cpu);
}

int count(const std::string& text, const std::string& word) {
  int n = 0;
  for (std::size_t at = 0; (at = text.find(word, at)) != text.npos; ++at) ++n;
  return n;
}

}  // namespace

TEST_CASE("the parameters of 32 layers take as many lines as those of 4") {
  std::vector<std::ptrdiff_t> lines;
  for (const int layers : {4, 32}) {
    const rankc::plan_data plan = deep(layers, 1);
    REQUIRE(plan.diagnostics.empty());
    const std::string text = parameter_blocks_text(lower(plan, dtype::f32));
    CHECK(count(text, "\"layers.#.wq\"") == 1);
    lines.push_back(std::ranges::count(text, '\n'));
  }
  CHECK(lines[0] == lines[1]);
}

TEST_CASE("a block begins with the number of its pipeline coordinate's first layer") {
  const rankc::plan_data plan = deep(8, 2);
  REQUIRE(plan.diagnostics.empty());
  const lowered l = lower(plan, dtype::f32);
  const std::string text = parameter_blocks_text(l);
  CHECK(text.find("parameters_0{{rows_0, 0}, {rows_1, ") != text.npos);
  CHECK(text.find(", 0, 4, ") != text.npos);  // layers 0 to 3
  CHECK(text.find(", 4, 4, ") != text.npos);  // layers 4 to 7
}

TEST_CASE("a number in a name that is not written as a layer's stays in the name") {
  const rankc::plan_data plan = deep(4, 1);
  REQUIRE(plan.diagnostics.empty());
  lowered l = lower(plan, dtype::f32);
  for (const char* const name : {"layers.00.g", "w.-1", "w.+1"}) {
    l.ranks[0].parameters[0].name = name;
    CHECK(count(parameter_blocks_text(l), "\"" + std::string(name) + "\"") == 1);
  }
}

TEST_CASE("pipeline coordinates with equal lanes share the table") {
  const rankc::plan_data plan = deep(8, 8);
  REQUIRE(plan.diagnostics.empty());
  const lowered l = lower(plan, dtype::f32);
  const std::map<std::string, std::string> files =
      emit_layouts(l, std::vector<kept_logits>(8), std::vector<std::size_t>(8));
  const std::string& text = files.at("layouts.hpp");
  CHECK(count(text, "constexpr lane_row lanes_") == 3);  // the first has one, the last, and all between them
  CHECK(count(text, ".lanes = lanes_1") == 6);
  CHECK(count(text, "{.arena_bytes = ") == 8);
  CHECK(count(files.at("calls.hpp"), "constexpr call_row calls_") == 3);
}

}  // namespace layouts_test
