// SPDX-License-Identifier: Apache-2.0
// Files that are large in one place: each is checked in time that grows with its size, or refused.
#include "../../said.hpp"
#include "../../slowness.hpp"
#include "proof/pipeline_program.hpp"

#include <rankc/codegen/certificate.hpp>
#include <rankc/codegen/prove.hpp>
#include <rankc/codegen/verify.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <ctime>
#include <stdexcept>
#include <string>
#include <vector>

namespace large_certificates_test {

namespace {

using namespace rankc::codegen;
using nlohmann::json;
using rankc::test::said_in;

constexpr int many = 120'000;

json sample() {
  const program p = testing::pipeline_program({.pp = 2, .tp = 1, .microbatches = 2});
  return json::parse(certificate(p, prove(p)));
}
json& ops(json& j) { return j["steps"][0]["programs"][0]["ops"]; }
/// A kernel that reads and writes.
json& kernel(json& j) {
  for (json& o : ops(j))
    if (o["kind"] == "compute" && !o["reads"].empty() && !o["writes"].empty()) return o;
  throw std::logic_error("the sample has no such op");
}
void repeat_first(json& list) {
  const json first = list.at(0);
  for (int i = 0; i < many; ++i) list.push_back(first);
}

/// The answer, of a check that takes less processor time than this. Units: seconds.
std::string verified(const json& j, double limit) {
  const std::string text = j.dump();
  const std::clock_t begin = std::clock();
  std::string answer = verify(text);
  CHECK(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC < rankc::test::scaled(limit).count());
  return answer;
}

/// A step of `size` ranks along the axis tp, of which the file lists all, and of two of four along dp. It
/// has a communicator of the ranks at each listed index of dp.
json two_groups(int size) {
  json j = sample();
  j["world"] = 4 * size;
  j["represented"] = {{"dp", 4, 2}, {"tp", size, size}};
  json begin = ops(j).front(), end = ops(j).back();
  for (json* o : {&begin, &end})
    for (const char* list : {"waits", "reads", "writes", "views", "holds"}) (*o)[list] = json::array();
  begin["position"] = 0;
  end["position"] = 1;
  json& step = j["steps"][0];
  step["programs"] = {{{"arena_bytes", 0}, {"ops", {begin, end}}}};
  step["communicators"] = json::array();
  step["ranks"] = json::array();
  for (int dp : {0, 1}) {
    json members = json::array();
    for (int tp = 0; tp < size; ++tp) {
      const int rank = dp * size + tp;
      members.push_back(rank);
      step["ranks"].push_back({{"rank", rank},
                               {"program", 0},
                               {"communicators", {dp}},
                               {"values", json::array()},
                               {"firsts", json::array()}});
    }
    step["communicators"].push_back({{"name", "tp " + std::to_string(dp)},
                                     {"ranks", members},
                                     {"size", size},
                                     {"one_layout", false},
                                     {"along", json::array()}});
  }
  return j;
}

}  // namespace

TEST_CASE("large: communicators of many ranks") {
  json j = two_groups(16'000);
  CHECK(verified(j, 5) == "");
  std::swap(j["steps"][0]["communicators"][1]["ranks"][0], j["steps"][0]["communicators"][1]["ranks"][1]);
  CHECK(said_in(verified(j, 5)).id == 7260);
}

TEST_CASE("large: the proof of an op of many reads and writes") {
  program p = testing::pipeline_program({.pp = 2, .tp = 1, .microbatches = 2});
  rank_program& rank = p.ranks[0];
  op &begin = rank.ops[0], &kernel = rank.ops[1];
  const element_type type = kernel.reads.at(0).type;
  for (int i = 0; i < many; ++i, rank.arena_bytes += 16) {
    const std::size_t middle = rank.arena_bytes + 8;
    const rankc::codegen::access read{rank.arena_bytes, middle, 1'000'000 + 2 * i, type};
    begin.writes.push_back(read);
    kernel.reads.push_back(read);
    kernel.writes.push_back({middle, middle + 8, read.value + 1, type});
  }
  const std::clock_t start = std::clock();
  const verdict proven = prove(p);
  CHECK(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC < rankc::test::scaled(2).count());
  CHECK(proven.reasons == std::vector<std::string>());
}

TEST_CASE("large: a list of many ranks") {
  const std::string text = two_groups(60'000).dump();
  const std::clock_t begin = std::clock();
  CHECK(read_certificate(text).steps.at(0).program.ranks.size() == 120'000);
  CHECK(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC < rankc::test::scaled(4).count());
}

TEST_CASE("large: an op that reads and writes the same bytes many times") {
  program p = testing::pipeline_program({.pp = 2, .tp = 1, .microbatches = 2});
  rank_program& rank = p.ranks[0];
  op &begin = rank.ops[0], &kernel = rank.ops[1];
  const element_type type = kernel.reads.at(0).type;
  const std::size_t first = rank.arena_bytes, middle = first + 8 * many;
  rank.arena_bytes = middle + 8 * many;
  for (int i = 0; i < many; ++i) {
    const std::size_t at = 8 * static_cast<std::size_t>(i);
    begin.writes.push_back({first + at, first + at + 8, 1'000'000, type});
    kernel.reads.push_back({first, middle, 1'000'000, type});
    kernel.writes.push_back({middle, middle + at + 8, 1'000'001, type});
  }
  const std::clock_t start = std::clock();
  const verdict proven = prove(p);
  CHECK(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC < rankc::test::scaled(2).count());
  CHECK(proven.reasons == std::vector<std::string>());
  CHECK(said_in(verified(json::parse(certificate(p, proven)), 8)).id == 7268);
}

TEST_CASE("large: an op of more reads, writes or operands than any has") {
  for (const char* list : {"reads", "writes", "operands"}) {
    CAPTURE(list);
    json j = sample();
    json& changed = kernel(j)[list];
    if (changed.empty()) changed.push_back(0);
    repeat_first(changed);
    CHECK(said_in(verified(j, 5)).id == 7268);
  }
}

TEST_CASE("large: an optimizer of many reads and writes") {
  json j = sample();
  json& o = kernel(j);
  o["row"] = "adamw";
  repeat_first(o["reads"]);
  repeat_first(o["writes"]);
  CHECK(said_in(verified(j, 5)).id == 0);
}

TEST_CASE("large: a world of many axes") {
  json j = sample();
  j["represented"] = json::array();
  for (int i = 0; i < many; ++i) j["represented"].push_back({"x" + std::to_string(i), 1, 1});
  j["represented"].push_back({"dp", 4, 2});
  j["world"] = 4;
  CHECK(said_in(verified(j, 5)).id == 7276);
}

TEST_CASE("large: ops without a kernel") {
  json j = sample();
  json none = kernel(j);
  none["row"] = "";
  for (const char* list : {"waits", "reads", "writes", "views", "operands", "given"})
    none[list] = json::array();
  for (json& p : j["steps"][0]["programs"])
    for (json& o : p["ops"])
      if (o["kind"] != "begin") o["position"] = o["position"].get<int>() + many;
  json all = json::array({ops(j)[0]});
  for (int i = 1; i < many; ++i) {
    none["position"] = i;
    all.push_back(none);
  }
  for (json o : ops(j)) {
    if (o["kind"] == "begin") continue;
    for (json& w : o["waits"]) w = w == 0 ? 0 : w.get<int>() + many - 1;
    all.push_back(std::move(o));
  }
  ops(j) = std::move(all);
  CHECK(verified(j, 4) == "");
}

}  // namespace large_certificates_test
