// SPDX-License-Identifier: Apache-2.0
// Files that are large in one place: each is checked in time that grows with its size, or refused.
#include "../../said.hpp"
#include "../../slowness.hpp"
#include "pipeline_program.hpp"

#include <rankc/codegen/certificate.hpp>
#include <rankc/codegen/prove.hpp>
#include <rankc/codegen/verify.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <ctime>
#include <stdexcept>
#include <string>

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

}  // namespace

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
