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

namespace certificate_test {

namespace {

using namespace rankc::codegen;
using nlohmann::json;

std::string sample() {
  const auto p = testing::pipeline_program({.pp = 2, .tp = 2, .microbatches = 3});
  return certificate(p, prove(p));
}

json& step(json& j) { return j["steps"][0]; }

/// The sample with a program for each rank, so that one rank can be tampered with.
json sample_by_rank() {
  json j = json::parse(sample());
  const json shared = step(j)["programs"];
  step(j)["programs"] = json::array();
  for (auto& r : step(j)["ranks"]) {
    step(j)["programs"].push_back(shared[r["program"].get<std::size_t>()]);
    r["program"] = step(j)["programs"].size() - 1;
  }
  return j;
}

json& ops(json& j, int rank) { return step(j)["programs"][rank]["ops"]; }

/// The first op of a rank that satisfies a condition.
json& find(json& j, int rank, const std::function<bool(const json&)>& condition) {
  for (auto& o : ops(j, rank))
    if (condition(o)) return o;
  FAIL("no such op");
  return j;
}
/// A computation as the first or the last op of a rank.
void become(json& computation, const char* kind) {
  for (const char* field : {"row", "rows", "seq", "number"}) computation.erase(field);
  computation["kind"] = kind;
  computation["holds"] = json::array();
}
json& of_kind(json& j, int rank, const char* kind) {
  return find(j, rank, [&](const json& o) { return o["kind"] == kind; });
}

}  // namespace

TEST_CASE("a certificate has the same bytes every time and a line per op") {
  const auto text = sample();
  CHECK(text == sample());
  const json j = json::parse(text);
  CHECK(j["format"] == "rankc certificate 8");
  std::size_t ops = 0;
  for (const auto& p : j["steps"][0]["programs"]) ops += p["ops"].size();
  CHECK(j["steps"][0]["programs"].size() == 2);  // of four ranks, two and two run the same
  CHECK(j["steps"][0]["ranks"].size() == 4);
  const auto lines = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  CHECK(lines > ops);
  CHECK(lines < ops + 41);  // what is not an op
  CHECK(verify(text) == "");
}

TEST_CASE("tampering is refused") {
  json j = sample_by_rank();
  REQUIRE(verify(j.dump()) == "");
  std::string expected;
  SUBCASE("event removed") {
    find(j, 2, [](const json& o) { return o["kind"] == "compute" && !o["waits"].empty(); })["waits"].clear();
    expected = "may find it as";
  }
  SUBCASE("order reversed") {
    for (auto& p : step(j)["programs"])
      for (auto& o : p["ops"]) o["position"] = 100000 - o["position"].get<int>();
    expected = "which it waits for";
  }
  SUBCASE("one position") {
    of_kind(j, 0, "send")["position"] = 100000;
    expected = "have different positions";
  }
  SUBCASE("position of the op before") {
    ops(j, 0)[1]["position"] = ops(j, 0)[0]["position"];
    expected = "comes before \"begin\", which it waits for";
  }
  SUBCASE("negative position") {
    of_kind(j, 0, "begin")["position"] = -1;
    expected = "has no position";
  }
  SUBCASE("name") {
    of_kind(j, 0, "send")["name"] = "F9";
    expected = "another message";
  }
  SUBCASE("bytes") {
    of_kind(j, 0, "send")["bytes"] = 4;
    expected = "does not move the 4 bytes it says";
  }
  SUBCASE("bytes of a collective") {
    of_kind(j, 0, "collective")["bytes"] = 4;
    expected = "is no all_reduce of 4 bytes";
  }
  SUBCASE("message") {
    of_kind(j, 0, "send")["message"] = 1000;
    expected = "another message";
  }
  SUBCASE("peer") {
    of_kind(j, 0, "send")["peer"] = 2;
    expected = "cannot have peer 2";
  }
  SUBCASE("peer is the rank itself") {
    json& send = of_kind(j, 0, "send");
    send["peer"] = 1 - send["peer"].get<int>();
    expected = "cannot have peer";
  }
  SUBCASE("communicator") {
    of_kind(j, 0, "send")["communicator"] = 99;
    expected = "uses communicator 99 of";
  }
  SUBCASE("communicator of the rank") {
    step(j)["ranks"][0]["communicators"][0] = 99;
    expected = "uses communicator 99 of";
  }
  SUBCASE("one communicator by two numbers") {
    json& known = step(j)["ranks"][0]["communicators"];
    known[1] = known[0];
    expected = "has two numbers for a communicator";
  }
  SUBCASE("value of the rank") {
    step(j)["ranks"][0]["values"][0][0] = 100000;
    expected = "other values";
  }
  SUBCASE("negative value of the rank") {
    step(j)["ranks"][0]["values"][0][0] = -1;
    expected = "has values that are none";
  }
  SUBCASE("values of the rank missing") {
    step(j)["ranks"][0]["values"].erase(0);
    expected = "for ops that name";
  }
  SUBCASE("too many values") {
    step(j)["ranks"][0]["values"][0][1] = 1 << 30;
    expected = "no more together than";
  }
  SUBCASE("program of the rank") {
    step(j)["ranks"][0]["program"] = 4;
    expected = "program is 4 of 4";
  }
  SUBCASE("program of another rank") {
    step(j)["ranks"][0]["program"] = 2;
    expected = "values";
  }
  SUBCASE("program of no rank") {
    step(j)["programs"].push_back(step(j)["programs"][0]);
    expected = "a program is of no rank";
  }
  SUBCASE("steps") {
    j["steps"] = json::array();
    expected = "steps must name a program";
  }
  SUBCASE("second step is wrong") {
    j["steps"].push_back(step(j));
    of_kind(j, 0, "send")["message"] = 1000;
    expected = "another message";
    std::swap(j["steps"][0], j["steps"][1]);
  }
  SUBCASE("member") {
    step(j)["communicators"][0]["ranks"] = {0, 0};
    expected = "must list distinct ranks";
  }
  SUBCASE("value sent") {
    of_kind(j, 0, "send")["reads"][0][2] = 0;
    expected = "other values";
  }
  SUBCASE("value read") {
    of_kind(j, 0, "compute")["reads"][0][2] = 1;
    expected = "may find it as";
  }
  SUBCASE("bytes read") {
    of_kind(j, 0, "compute")["reads"][0][1] = 1 << 20;
    expected = "of an arena of";
  }
  SUBCASE("no bytes") {
    of_kind(j, 0, "compute")["reads"][0][1] = 0;
    expected = "uses bytes";
  }
  SUBCASE("unwritten") {
    of_kind(j, 0, "begin")["writes"].clear();
    expected = "which nothing has written";
  }
  SUBCASE("arena") {
    step(j)["programs"][0]["arena_bytes"] = 64;
    expected = "of an arena of 64";
  }
  SUBCASE("stream") {
    of_kind(j, 0, "send")["stream"] = 7;
    expected = "is on stream 7 of 7";
  }
  SUBCASE("stream moved") {
    of_kind(j, 0, "compute")["stream"] = 1;
    expected = "may find it as";
  }
  SUBCASE("streams") {
    step(j)["streams"] = 1;
    expected = "of 1";
  }
  SUBCASE("wait for an op that is issued later, though it runs earlier") {
    bool found = false;
    for (json& rank : step(j)["programs"])
      for (std::size_t i = 0; i < rank["ops"].size(); ++i)
        for (std::size_t later = i + 1; later < rank["ops"].size() && !found; ++later)
          if ((found = rank["ops"][later]["position"] < rank["ops"][i]["position"]))
            rank["ops"][i]["waits"].push_back(later);
    REQUIRE(found);
    expected = "which is not earlier";
  }
  SUBCASE("second begin") {
    become(of_kind(j, 0, "compute"), "begin");
    expected = "begin comes first";
  }
  SUBCASE("early end") {
    become(of_kind(j, 0, "compute"), "end");
    expected = "end comes last";
  }
  SUBCASE("two values") {
    json& writes = of_kind(j, 0, "compute")["writes"];
    writes.push_back(writes[0]);
    writes[1][2] = 0;
    expected = "writes two values";
  }
  SUBCASE("communicator of others") {
    const auto has_0 = [](const json& c) { return c["ranks"][0] == 0 || c["ranks"][1] == 0; };
    int other = 0;
    while (has_0(step(j)["communicators"][other])) ++other;
    step(j)["ranks"][0]["communicators"][0] = other;
    expected = "which it is not in";
  }
  SUBCASE("later wait") {
    of_kind(j, 0, "compute")["waits"] = {500};
    expected = "which is not earlier";
  }
  SUBCASE("kind") {
    json& o = of_kind(j, 0, "collective");
    o["kind"] = "compute";
    o["row"] = "";
    o["rows"] = o["seq"] = o["number"] = 0;
    expected = "means nothing here";
  }
  SUBCASE("no row") {
    of_kind(j, 0, "compute").erase("row");
    expected = "has no field \"row\"";
  }
  SUBCASE("no views") {
    of_kind(j, 0, "compute").erase("views");
    expected = "has no field \"views\"";
  }
  SUBCASE("a view of three dims") {
    of_kind(j, 0, "compute")["views"] = json::array({json::array({"x", "in", 0, 1, 0, {1, 2, 3}, 1, 3})});
    expected = "of more than two dims";
  }
  SUBCASE("too few firsts") {
    step(j)["ranks"][0]["firsts"] = json::array();
    of_kind(j, 0, "compute")["views"] = json::array({json::array({"x", "in", 0, 1, 0, {1, 2}, 1, 2})});
    expected = "firsts are 0 for ops that have 1";
  }
  SUBCASE("unknown kind") {
    of_kind(j, 0, "compute")["kind"] = "sleep";
    expected = "is a \"sleep\"";
  }
  SUBCASE("op lost") {
    ops(j, 0).erase(3);
    expected = "rank";
  }
  SUBCASE("rank lost") {
    step(j)["ranks"].erase(3);
    expected = "world is 4 for 3 ranks";
  }
  SUBCASE("rank lost, and the world smaller") {
    step(j)["ranks"].erase(3);
    j["world"] = 3;
    expected = "must list distinct ranks";
  }
  SUBCASE("rank told twice") {
    step(j)["ranks"][1]["rank"] = 0;
    expected = "rank is 0; ranks ascend";
  }
  SUBCASE("rank beyond the world") {
    step(j)["ranks"][3]["rank"] = 4;
    expected = "rank is 4; ranks ascend from 0 to 3";
  }
  SUBCASE("represented by all") {
    j["represented"] = "some";
    expected = "world is 4 for 4 ranks";
  }
  SUBCASE("format") {
    j["format"] = "rankc certificate 9";
    expected = "format must be";
  }
  SUBCASE("format of before") {
    j["format"] = "rankc certificate 1";
    expected = "which says nothing of gradients";
  }
  SUBCASE("second format") {
    j["format"] = "rankc certificate 2";
    expected = "which says nothing of what kernels are given";
  }
  SUBCASE("third format") {
    j["format"] = "rankc certificate 3";
    expected = "which says nothing of where sums are dealt out from";
  }
  SUBCASE("fourth format") {
    j["format"] = "rankc certificate 4";
    expected = "which says nothing of the optimizer";
  }
  SUBCASE("a sum's origin") {
    for (json& s : step(j)["programs"][0]["sums"])
      if (s["kind"] == "gradient") s["from"] = json::array({0, 8});
    expected = "rank 1 does not say so";
  }
  SUBCASE("hash") {
    j["plan_hash"] = 7;
    expected = "plan_hash must be a string";
  }
  SUBCASE("short hash") {
    j["plan_hash"] = "0123456789abcde";
    expected = "plan_hash must be 16 hexadecimal digits";
  }
  SUBCASE("long hash") {
    j["plan_hash"] = "0123456789abcdef0";
    expected = "plan_hash must be 16 hexadecimal digits";
  }
  SUBCASE("capital hash") {
    j["plan_hash"] = "0123456789ABCDEF";
    expected = "plan_hash must be 16 hexadecimal digits";
  }
  SUBCASE("extra field") {
    of_kind(j, 0, "compute")["wait"] = json::array();
    expected = "means nothing here";
  }
  SUBCASE("missing field") {
    of_kind(j, 0, "compute").erase("waits");
    expected = "has no field \"waits\"";
  }
  SUBCASE("fraction") {
    of_kind(j, 0, "compute")["stream"] = 0.5;
    expected = "must be a whole number";
  }
  SUBCASE("range") {
    of_kind(j, 0, "compute")["position"] = 1ull << 40;
    expected = "is out of range";
  }
  SUBCASE("ops that are none") {
    ops(j, 0) = json::array({1, 2});
    expected = "ops must be a list of ops";
  }
  const auto answer = verify(j.dump());
  CHECK_MESSAGE(answer.find(expected) != std::string::npos, answer);
  CHECK_FALSE(answer.empty());
}

TEST_CASE("what is written twice is refused: one of the two would go unread") {
  auto text = sample();
  const auto insert = [&](const std::string& at, const std::string& more) {
    return text.insert(text.find(at), more);
  };
  CHECK(verify(insert("\"ops\": [",
                      "\"ops\": "
                      "[{\"kind\":\"end\",\"name\":\"x\",\"action\":0,\"stream\":0,\"waits\":[],\"reads\":[],"
                      "\"writes\":[],\"views\":[],\"holds\":[],\"position\":0}], "))
            .find("a program has ops twice") != std::string::npos);
  text = sample();
  CHECK(verify(insert("\"programs\": [", "\"programs\": [{\"arena_bytes\": 1, \"ops\": []}],\n"))
            .find("not a certificate: ") == 0);
}

TEST_CASE("text that is no certificate is answered with a sentence") {
  for (const char* text : {"", "{", "[]", "null", "3", "\"x\"", "{}", "{\"format\":\"rankc certificate 8\"}"})
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
  json j = sample_by_rank();
  const auto refused = [&](json& number, int delta) {
    const json before = number;
    number = before.get<int>() + delta;
    const auto answer = verify(j.dump());
    number = before;
    return !answer.empty();
  };
  for (auto& p : step(j)["programs"])
    for (auto& o : p["ops"]) {
      INFO(o.dump());
      for (auto& a : o["reads"]) CHECK(refused(a[2], 1000));  // a value that nobody writes
      if (!o.contains("communicator")) continue;
      CHECK(refused(o["bytes"], 1));
      CHECK(refused(o["message"], 1));
      CHECK(refused(o["position"], 1));
    }
}

}  // namespace certificate_test
