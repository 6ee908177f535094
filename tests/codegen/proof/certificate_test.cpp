// SPDX-License-Identifier: Apache-2.0
#include "pipeline_program.hpp"

#include <rankc/codegen/certificate.hpp>
#include <rankc/codegen/prove.hpp>
#include <rankc/codegen/verify.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <random>
#include <string>

namespace {

using namespace rankc::codegen;
using nlohmann::json;

std::string sample() {
  const auto p = testing::pipeline_program({.pp = 2, .tp = 2, .microbatches = 3});
  return certificate(p, prove(p));
}

/// The first op of a rank that satisfies a condition.
json& find(json& j, int rank, const std::function<bool(const json&)>& condition) {
  for (auto& o : j["ranks"][rank]["ops"])
    if (condition(o)) return o;
  FAIL("no such op");
  return j;
}
json& of_kind(json& j, int rank, const char* kind) {
  return find(j, rank, [&](const json& o) { return o["kind"] == kind; });
}

}  // namespace

TEST_CASE("a certificate has the same bytes every time and a line per op") {
  const auto text = sample();
  CHECK(text == sample());
  const json j = json::parse(text);
  CHECK(j["format"] == "rankc certificate 1");
  std::size_t ops = 0;
  for (const auto& r : j["ranks"]) ops += r["ops"].size();
  const auto lines = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  CHECK(lines > ops);
  CHECK(lines < ops + 40);
  CHECK(verify(text) == "");
}

TEST_CASE("tampering is refused") {
  json j = json::parse(sample());
  std::string expected;
  SUBCASE("event removed") {
    find(j, 2, [](const json& o) { return o["kind"] == "compute" && !o["waits"].empty(); })["waits"].clear();
    expected = "may find it as";
  }
  SUBCASE("order reversed") {
    for (auto& r : j["ranks"])
      for (auto& o : r["ops"]) o["position"] = 100000 - o["position"].get<int>();
    expected = "which it waits for";
  }
  SUBCASE("one position") {
    of_kind(j, 0, "send")["position"] = 100000;
    expected = "have different positions";
  }
  SUBCASE("position of the op before") {
    json& ops = j["ranks"][0]["ops"];
    ops[1]["position"] = ops[0]["position"], expected = "comes before \"begin\", which it waits for";
  }
  SUBCASE("negative position") { of_kind(j, 0, "begin")["position"] = -1, expected = "has no position"; }
  SUBCASE("name") { of_kind(j, 0, "send")["name"] = "F9", expected = "another message"; }
  SUBCASE("bytes") { of_kind(j, 0, "send")["bytes"] = 4, expected = "does not move the 4 bytes it says"; }
  SUBCASE("bytes of a collective") { of_kind(j, 0, "collective")["bytes"] = 4, expected = "another message"; }
  SUBCASE("message") { of_kind(j, 0, "send")["message"] = 1000, expected = "another message"; }
  SUBCASE("peer") { of_kind(j, 0, "send")["peer"] = 1, expected = "cannot have peer 1"; }
  SUBCASE("communicator") {
    of_kind(j, 0, "send")["communicator"] = 99, expected = "uses communicator 99 of";
  }
  SUBCASE("member") { j["communicators"][0]["ranks"] = {0, 0}, expected = "must list distinct ranks"; }
  SUBCASE("value sent") { of_kind(j, 0, "send")["reads"][0][2] = 0, expected = "other values"; }
  SUBCASE("value read") { of_kind(j, 0, "compute")["reads"][0][2] = 1, expected = "may find it as"; }
  SUBCASE("bytes read") { of_kind(j, 0, "compute")["reads"][0][1] = 1 << 20, expected = "of an arena of"; }
  SUBCASE("no bytes") { of_kind(j, 0, "compute")["reads"][0][1] = 0, expected = "uses bytes"; }
  SUBCASE("unwritten") { of_kind(j, 0, "begin")["writes"].clear(), expected = "which nothing has written"; }
  SUBCASE("arena") { j["ranks"][0]["arena_bytes"] = 64, expected = "of an arena of 64"; }
  SUBCASE("stream") { of_kind(j, 0, "send")["stream"] = 7, expected = "is on stream 7 of 7"; }
  SUBCASE("stream moved") { of_kind(j, 0, "compute")["stream"] = 1, expected = "may find it as"; }
  SUBCASE("streams") { j["streams"] = 1, expected = "of 1"; }
  SUBCASE("wait for an op that is issued later, though it runs earlier") {
    bool found = false;
    for (json& rank : j["ranks"])
      for (std::size_t i = 0; i < rank["ops"].size(); ++i)
        for (std::size_t later = i + 1; later < rank["ops"].size() && !found; ++later)
          if ((found = rank["ops"][later]["position"] < rank["ops"][i]["position"]))
            rank["ops"][i]["waits"].push_back(later);
    REQUIRE(found);
    expected = "which is not earlier";
  }
  SUBCASE("second begin") { of_kind(j, 0, "compute")["kind"] = "begin", expected = "begin comes first"; }
  SUBCASE("early end") { of_kind(j, 0, "compute")["kind"] = "end", expected = "end comes last"; }
  SUBCASE("two values") {
    json& writes = of_kind(j, 0, "compute")["writes"];
    writes.push_back(writes[0]), writes[1][2] = 1000, expected = "writes two values";
  }
  SUBCASE("communicator of others") {
    const auto has_0 = [](const json& c) { return c["ranks"][0] == 0 || c["ranks"][1] == 0; };
    int other = 0;
    while (has_0(j["communicators"][other])) ++other;
    of_kind(j, 0, "collective")["communicator"] = other, expected = "its rank is not in";
  }
  SUBCASE("later wait") { of_kind(j, 0, "compute")["waits"] = {500}, expected = "which is not earlier"; }
  SUBCASE("kind") { of_kind(j, 0, "collective")["kind"] = "compute", expected = "means nothing here"; }
  SUBCASE("unknown kind") { of_kind(j, 0, "compute")["kind"] = "sleep", expected = "is a \"sleep\""; }
  SUBCASE("op lost") { j["ranks"][0]["ops"].erase(3), expected = "rank"; }
  SUBCASE("rank lost") { j["ranks"].erase(3), expected = "world is 4 for 3 ranks"; }
  SUBCASE("rank lost, and the world smaller") { j["ranks"].erase(3), j["world"] = 3, expected = "must list distinct ranks"; }
  SUBCASE("rank told twice") { j["ranks"][1]["rank"] = 0, expected = "rank is 0; ranks ascend"; }
  SUBCASE("rank beyond the world") { j["ranks"][3]["rank"] = 4, expected = "rank is 4; ranks ascend from 0 to 3"; }
  SUBCASE("represented by all") { j["represented"] = "some", expected = "world is 4 for 4 ranks"; }
  SUBCASE("format") { j["format"] = "rankc certificate 2", expected = "format"; }
  SUBCASE("hash") { j["plan_hash"] = 7, expected = "plan_hash must be a string"; }
  SUBCASE("short hash") { j["plan_hash"] = "0123456789abcde", expected = "plan_hash must be 16 hexadecimal digits"; }
  SUBCASE("long hash") { j["plan_hash"] = "0123456789abcdef0", expected = "plan_hash must be 16 hexadecimal digits"; }
  SUBCASE("capital hash") { j["plan_hash"] = "0123456789ABCDEF", expected = "plan_hash must be 16 hexadecimal digits"; }
  SUBCASE("extra field") {
    of_kind(j, 0, "compute")["wait"] = json::array(), expected = "means nothing here";
  }
  SUBCASE("missing field") { of_kind(j, 0, "compute").erase("waits"), expected = "has no field \"waits\""; }
  SUBCASE("fraction") { of_kind(j, 0, "compute")["stream"] = 0.5, expected = "must be a whole number"; }
  SUBCASE("range") { of_kind(j, 0, "compute")["position"] = 1ull << 40, expected = "is out of range"; }
  const auto answer = verify(j.dump());
  CHECK_MESSAGE(answer.find(expected) != std::string::npos, answer);
  CHECK_FALSE(answer.empty());
}

TEST_CASE("text that is no certificate is answered with a sentence") {
  for (const char* text : {"", "{", "[]", "null", "3", "\"x\"", "{}", "{\"format\":\"rankc certificate 1\"}"})
    CHECK(verify(text).find("not a certificate: ") == 0);
  CHECK(verify(std::string(1 << 20, '[')).find("not a certificate: ") == 0);
  CHECK(verify(std::string(1 << 20, '[') + std::string(1 << 20, ']')).find("not a certificate: ") == 0);
}

TEST_CASE("no damage to the text crashes the checker") {
  const auto text = sample();
  std::mt19937 random(1);
  int refused = 0;
  for (int n = 0; n < 2000; ++n) {
    std::string damaged = text;
    for (unsigned k = random() % 4; k < 4; ++k) {
      const auto at = random() % damaged.size();
      switch (random() % 3) {
        case 0:
          damaged[at] = "0123456789-,:[]{}\"ae."[random() % 21];
          break;
        case 1:
          damaged.erase(at, random() % 40);
          break;
        default:
          damaged.insert(at, damaged.substr(random() % damaged.size(), random() % 40));
      }
    }
    refused += !verify(damaged).empty();
  }
  CHECK(refused > 1500);
}

TEST_CASE("every number of a value, place or size matters") {
  json j = json::parse(sample());
  const auto refused = [&](json& number, int delta) {
    const json before = number;
    number = before.get<int>() + delta;
    const auto answer = verify(j.dump());
    number = before;
    return !answer.empty();
  };
  for (auto& r : j["ranks"])
    for (auto& o : r["ops"]) {
      INFO(o.dump());
      for (auto& a : o["reads"]) CHECK(refused(a[2], 1000));  // a value that nobody writes
      if (!o.contains("communicator")) continue;
      CHECK(refused(o["bytes"], 1));
      CHECK(refused(o["message"], 1));
      CHECK(refused(o["position"], 1));
    }
}
