// SPDX-License-Identifier: Apache-2.0
#include "proof/pipeline_program.hpp"
#include "../../said.hpp"

#include <rankc/codegen/certificate.hpp>
#include <rankc/codegen/prove.hpp>
#include <rankc/codegen/verify.hpp>

#include <certificate/document.hpp>
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <functional>
#include <iterator>
#include <random>
#include <string>

namespace certificate_test {

namespace {

using namespace rankc::codegen;
using nlohmann::json;
using rankc::test::said;
using rankc::test::said_in;

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
  for (const char* field : {"row", "rows", "seq", "number", "given", "operands"}) computation.erase(field);
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
  CHECK(j["format"] == "rankc certificate 10");
  std::size_t ops = 0;
  for (const auto& p : j["steps"][0]["programs"]) ops += p["ops"].size();
  CHECK(j["steps"][0]["programs"].size() == 2);  // the four ranks are two pairs that run the same program
  CHECK(j["steps"][0]["ranks"].size() == 4);
  const auto lines = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  CHECK(lines > ops);
  CHECK(lines < ops + 54);  // the rest of the lines are not ops
  CHECK(verify(text) == "");
}

TEST_CASE("FORMAT.md lists the fields of the schema") {
  std::ifstream page(RANKC_SOURCES "/codegen/certificate/FORMAT.md", std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(page), {}};
  CHECK_MESSAGE(text == schema::describe(),
                "write it again: rankc-verify --format > codegen/certificate/FORMAT.md");
}

TEST_CASE("tampering is refused") {
  json j = sample_by_rank();
  REQUIRE(verify(j.dump()) == "");
  said expected;
  SUBCASE("event removed") {
    find(j, 2, [](const json& o) { return o["kind"] == "compute" && !o["waits"].empty(); })["waits"].clear();
    expected = {7187, {"2", "1F0: enter", "1536", "F0: stage 0 -> 1"}};
  }
  SUBCASE("order reversed") {
    for (auto& p : step(j)["programs"])
      for (auto& o : p["ops"]) o["position"] = 100000 - o["position"].get<int>();
    expected = {7184, {"0", "0F0: enter", "99999", "begin", "100000"}};
  }
  SUBCASE("one position") {
    of_kind(j, 0, "send")["position"] = 100000;
    expected = {7182, {"0", "F0: stage 0 -> 1", "100000", "2", "8"}};
  }
  SUBCASE("position of the op before") {
    ops(j, 0)[1]["position"] = ops(j, 0)[0]["position"];
    expected = {7184, {"0", "0F0: enter", "0", "begin", "0"}};
  }
  SUBCASE("a position that no order needs") {
    of_kind(j, 0, "end")["position"] = 1 << 25;
    expected = {7164, {"0", "end", "33554432", "16777216"}};
  }
  SUBCASE("a value that no access needs") {
    ops(j, 0)[0]["writes"][0][2] = 1 << 30;
    expected = {7286, {"1073741824", "140", "139"}};
  }
  SUBCASE("too many ranks") {
    j["world"] = 1 << 21;
    expected = {7287, {"2097152", "1048576"}};
  }
  SUBCASE("too many streams") {
    step(j)["streams"] = 2000;
    expected = {7288, {"2000", "1024"}};
  }
  SUBCASE("a name of two lines") {
    j["plan"] = "a\nb";
    expected = {7289, {}};
  }
  SUBCASE("too many fields") {
    for (int n = 0; n < 100; ++n) j["more " + std::to_string(n)] = n;
    expected = {7290, {"64"}};
  }
  SUBCASE("represented ranks along no axis") {
    j["represented"] = json::array();
    expected = {7110, {"the document", "null where a list would be empty"}};
  }
  SUBCASE("negative position") {
    of_kind(j, 0, "begin")["position"] = -1;
    expected = {7164, {"0", "begin", "-1", "16777216"}};
  }
  SUBCASE("name") {
    of_kind(j, 0, "send")["name"] = "F9";
    expected = {7181, {"0", "F9", "F0: stage 0 -> 1", "2"}};
  }
  SUBCASE("bytes") {
    of_kind(j, 0, "send")["bytes"] = 4;
    expected = {7173, {"0", "F0: stage 0 -> 1", "128", "4"}};
  }
  SUBCASE("bytes of a collective") {
    of_kind(j, 0, "collective")["bytes"] = 4;
    expected = {7170, {"0", "0F0: layer 0 sum", "128", "128", "all_reduce", "4", "2"}};
  }
  SUBCASE("message") {
    of_kind(j, 0, "send")["message"] = 1000;
    expected = {7181, {"0", "F0: stage 0 -> 1", "F0: stage 0 -> 1", "2"}};
  }
  SUBCASE("peer") {
    of_kind(j, 0, "send")["peer"] = 2;
    expected = {7179, {"0", "F0: stage 0 -> 1", "2", "1"}};
  }
  SUBCASE("peer is the rank itself") {
    json& send = of_kind(j, 0, "send");
    send["peer"] = 1 - send["peer"].get<int>();
    expected = {7179, {"0", "F0: stage 0 -> 1", "0", "1"}};
  }
  SUBCASE("communicator") {
    of_kind(j, 0, "send")["communicator"] = 99;
    expected = {7178, {"0", "F0: stage 0 -> 1", "99", "4"}};
  }
  SUBCASE("communicator of the rank") {
    step(j)["ranks"][0]["communicators"][0] = 99;
    expected = {7176, {"0", "99", "8"}};
  }
  SUBCASE("one communicator by two numbers") {
    json& known = step(j)["ranks"][0]["communicators"];
    known[1] = known[0];
    expected = {7175, {"0"}};
  }
  SUBCASE("value of the rank") {
    step(j)["ranks"][0]["values"][0][0] = 100000;
    expected = {7183, {"0", "F0: stage 0 -> 1", "2"}};
  }
  SUBCASE("negative value of the rank") {
    step(j)["ranks"][0]["values"][0][0] = -1;
    expected = {7103, {"a rank: values: first", "-1"}};
  }
  SUBCASE("values of the rank missing") {
    step(j)["ranks"][0]["values"].erase(0);
    expected = {7138, {"0", "54"}};
  }
  SUBCASE("too many values") {
    step(j)["ranks"][0]["values"][0][1] = 1 << 30;
    expected = {7125, {"54", "1063551"}};
  }
  SUBCASE("program of the rank") {
    step(j)["ranks"][0]["program"] = 4;
    expected = {7137, {"4", "4"}};
  }
  SUBCASE("program of another rank") {
    step(j)["ranks"][0]["program"] = 2;
    expected = {7138, {"54", "63"}};
  }
  SUBCASE("program of no rank") {
    step(j)["programs"].push_back(step(j)["programs"][0]);
    expected = {7155, {"4"}};
  }
  SUBCASE("steps") {
    j["steps"] = json::array();
    expected = {7133, {}};
  }
  SUBCASE("second step is wrong") {
    j["steps"].push_back(step(j));
    j["steps"][1]["step"] = "evaluate";
    of_kind(j, 0, "send")["message"] = 1000;
    expected = {7181, {"0", "F0: stage 0 -> 1", "F0: stage 0 -> 1", "2"}};
    std::swap(j["steps"][0], j["steps"][1]);
  }
  SUBCASE("member") {
    step(j)["communicators"][0]["ranks"] = {0, 0};
    expected = {7157, {"tp 0 0", "3"}};
  }
  SUBCASE("value sent") {
    of_kind(j, 0, "send")["reads"][0][2] = 0;
    expected = {7183, {"0", "F0: stage 0 -> 1", "2"}};
  }
  SUBCASE("value read") {
    of_kind(j, 0, "compute")["reads"][0][2] = 1;
    expected = {7187, {"0", "0F0: enter", "3200", "begin"}};
  }
  SUBCASE("bytes read") {
    of_kind(j, 0, "compute")["reads"][0][1] = 1 << 20;
    expected = {7166, {"0", "0F0: enter", "3200", "1048576", "4", "3392"}};
  }
  SUBCASE("no bytes") {
    of_kind(j, 0, "compute")["reads"][0][1] = 0;
    expected = {7166, {"0", "0F0: enter", "3200", "0", "4", "3392"}};
  }
  SUBCASE("unwritten") {
    of_kind(j, 0, "begin")["writes"].clear();
    expected = {7186, {"0", "0F0: enter", "3200"}};
  }
  SUBCASE("arena") {
    step(j)["programs"][0]["arena_bytes"] = 64;
    expected = {7166, {"0", "begin", "0", "192", "0", "64"}};
  }
  SUBCASE("stream") {
    of_kind(j, 0, "send")["stream"] = 7;
    expected = {7163, {"0", "F0: stage 0 -> 1", "7", "6"}};
  }
  SUBCASE("stream moved") {
    of_kind(j, 0, "compute")["stream"] = 1;
    expected = {7187, {"0", "0F0: layer 0", "1152", "0F0: enter"}};
  }
  SUBCASE("streams") {
    step(j)["streams"] = 1;
    expected = {7163, {"0", "F0: stage 0 -> 1", "2", "0"}};
  }
  SUBCASE("wait for an op that is issued later, though it runs earlier") {
    bool found = false;
    for (json& rank : step(j)["programs"])
      for (std::size_t i = 0; i < rank["ops"].size(); ++i)
        for (std::size_t later = i + 1; later < rank["ops"].size() && !found; ++later)
          if ((found = rank["ops"][later]["position"] < rank["ops"][i]["position"]))
            rank["ops"][i]["waits"].push_back(later);
    REQUIRE(found);
    expected = {7165, {"2", "1F0: loss", "19", "8"}};
  }
  SUBCASE("second begin") {
    become(of_kind(j, 0, "compute"), "begin");
    expected = {7161, {"0", "0F0: enter"}};
  }
  SUBCASE("early end") {
    become(of_kind(j, 0, "compute"), "end");
    expected = {7162, {"0", "0F0: enter"}};
  }
  SUBCASE("a write over a read that it does not replace") {
    json& o = of_kind(j, 0, "compute");
    for (const int border : {0, 1}) o["writes"][0][border] = o["reads"][0][border];
    expected = {7169, {"0", "0F0: enter", "3200", "3264", "4", "3200", "3264"}};
  }
  SUBCASE("a write that replaces a read of other bytes") {
    of_kind(j, 0, "compute")["writes"][0][4] = 0;
    expected = {7269, {"0", "0F0: enter", "1152", "1280", "0", "3200", "3264"}};
  }
  SUBCASE("a communicator of two streams") {
    int sends = 0;
    find(j, 0, [&](const json& o) { return o["kind"] == "send" && ++sends == 2; })["stream"] = 0;
    expected = {7185, {"0", "F1: stage 0 -> 1", "0", "F0: stage 0 -> 1", "2", "0 -> 1 of 0 0"}};
  }
  SUBCASE("two values") {
    json& writes = of_kind(j, 0, "compute")["writes"];
    writes.push_back(writes[0]);
    writes[1][2] = 0;
    expected = {7189, {"0", "0F0: enter", "1152"}};
  }
  SUBCASE("communicator of others") {
    const auto has_0 = [](const json& c) { return c["ranks"][0] == 0 || c["ranks"][1] == 0; };
    int other = 0;
    while (has_0(step(j)["communicators"][other])) ++other;
    step(j)["ranks"][0]["communicators"][0] = other;
    expected = {7177, {"0", "0 -> 1 of 0 1"}};
  }
  SUBCASE("later wait") {
    of_kind(j, 0, "compute")["waits"] = {500};
    expected = {7165, {"0", "0F0: enter", "500", "0"}};
  }
  SUBCASE("kind") {
    json& o = of_kind(j, 0, "collective");
    o["kind"] = "compute";
    o["row"] = "";
    o["rows"] = o["seq"] = o["number"] = 0;
    o["given"] = json::array();
    expected = {7102, {"op \"0F0: layer 0 sum\"", "by_rows"}};
  }
  SUBCASE("no row") {
    of_kind(j, 0, "compute").erase("row");
    expected = {7101, {"op \"0F0: enter\"", "row"}};
  }
  SUBCASE("no views") {
    of_kind(j, 0, "compute").erase("views");
    expected = {7101, {"op \"0F0: enter\"", "views"}};
  }
  SUBCASE("a view of three dims") {
    of_kind(j, 0, "compute")["views"] = json::array({json::array({"x", "in", 0, 1, 0, {1, 2, 3}, 1, 3})});
    expected = {7120, {"op \"0F0: enter\": views: shape", "3"}};
  }
  SUBCASE("too few firsts") {
    step(j)["ranks"][0]["firsts"] = json::array();
    of_kind(j, 0, "compute")["views"] = json::array({json::array({"x", "in", 0, 1, 0, {1, 2}, 1, 2})});
    expected = {7127, {"0", "1"}};
  }
  SUBCASE("unknown kind") {
    of_kind(j, 0, "compute")["kind"] = "sleep";
    expected = {7108,
                {"op \"0F0: enter\": kind",
                 "\"begin\", \"compute\", \"send\", \"receive\", \"collective\", \"end\"", "\"sleep\""}};
  }
  SUBCASE("op lost") {
    ops(j, 0).erase(3);
    expected = {7165, {"0", "F0: stage 0 -> 1", "7", "6"}};
  }
  SUBCASE("rank lost") {
    step(j)["ranks"].erase(3);
    expected = {7140, {"4", "3"}};
  }
  SUBCASE("rank lost, and the world smaller") {
    step(j)["ranks"].erase(3);
    j["world"] = 3;
    expected = {7157, {"0 -> 1 of 0 1", "2"}};
  }
  SUBCASE("rank told twice") {
    step(j)["ranks"][1]["rank"] = 0;
    expected = {7142, {"0", "3"}};
  }
  SUBCASE("rank beyond the world") {
    step(j)["ranks"][3]["rank"] = 4;
    expected = {7142, {"4", "3"}};
  }
  SUBCASE("represented by all") {
    j["represented"] = json::array({json::array({"dp", 4, 4})});
    expected = {7141, {"4"}};
  }
  SUBCASE("format") {
    j["format"] = "rankc certificate 11";
    expected = {7130, {"rankc certificate 10", "\"rankc certificate 11\""}};
  }
  SUBCASE("no operands") {
    of_kind(j, 0, "send").erase("operands");
    expected = {7101, {"op \"F0: stage 0 -> 1\"", "operands"}};
  }
  SUBCASE("format of before") {
    j["format"] = "rankc certificate 1";
    expected = {7129, {"rankc certificate 1", "gradients", "rankc certificate 10"}};
  }
  SUBCASE("second format") {
    j["format"] = "rankc certificate 2";
    expected = {7129, {"rankc certificate 2", "views", "rankc certificate 10"}};
  }
  SUBCASE("third format") {
    j["format"] = "rankc certificate 3";
    expected = {
        7129, {"rankc certificate 3", "places from which sums are reduce-scattered", "rankc certificate 10"}};
  }
  SUBCASE("fourth format") {
    j["format"] = "rankc certificate 4";
    expected = {7129, {"rankc certificate 4", "optimizer", "rankc certificate 10"}};
  }
  SUBCASE("eighth format") {
    j["format"] = "rankc certificate 8";
    expected = {
        7129,
        {"rankc certificate 8",
         "tables and padding that a step leaves, the rounding of each op, and the target of its kernels",
         "rankc certificate 10"}};
  }
  SUBCASE("ninth format") {
    j["format"] = "rankc certificate 9";
    expected = {7129, {"rankc certificate 9", "operands of calls", "rankc certificate 10"}};
  }
  SUBCASE("a step of another name") {
    step(j)["step"] = "warm up";
    expected = {7108, {"a step: step", "\"train\", \"evaluate\"", "\"warm up\""}};
  }
  SUBCASE("a step twice") {
    j["steps"].push_back(step(j));
    expected = {7280, {"train"}};
  }
  SUBCASE("less is trusted") {
    j["trusted"].erase(4);
    expected = {7131, {}};
  }
  SUBCASE("trusted in other words") {
    j["trusted"][0] = "nothing";
    expected = {7131, {}};
  }
  SUBCASE("represented by a sentence") {
    j["represented"] = "some";
    expected = {7113, {"the document: represented", "\"some\""}};
  }
  SUBCASE("an axis without listed indices") {
    j["represented"] = json::array({json::array({"dp", 4})});
    expected = {7115, {"the document: represented", "2", "listed"}};
  }
  SUBCASE("a communicator of a whole world that leaves members out") {
    step(j)["communicators"][0]["along"] = json::array({1});
    expected = {7261, {step(j)["communicators"][0]["name"].get<std::string>(), "1"}};
  }
  SUBCASE("kernels of no target") {
    step(j)["kernels"] = "tpu";
    expected = {7108, {"a step: kernels", "\"cuda\", \"host\"", "\"tpu\""}};
  }
  SUBCASE("no layout") {
    step(j)["communicators"][0].erase("one_layout");
    expected = {7101, {"a communicator", "one_layout"}};
  }
  SUBCASE("a layout that is no flag") {
    step(j)["communicators"][0]["one_layout"] = 1;
    expected = {7106, {"a communicator: one_layout", "1"}};
  }
  SUBCASE("hash") {
    j["plan_hash"] = 7;
    expected = {7107, {"the document: plan_hash", "7"}};
  }
  SUBCASE("short hash") {
    j["plan_hash"] = "0123456789abcde";
    expected = {7132, {"\"0123456789abcde\""}};
  }
  SUBCASE("long hash") {
    j["plan_hash"] = "0123456789abcdef0";
    expected = {7132, {"\"0123456789abcdef0\""}};
  }
  SUBCASE("capital hash") {
    j["plan_hash"] = "0123456789ABCDEF";
    expected = {7132, {"\"0123456789ABCDEF\""}};
  }
  SUBCASE("extra field") {
    of_kind(j, 0, "compute")["wait"] = json::array();
    expected = {7102, {"op \"0F0: enter\"", "wait"}};
  }
  SUBCASE("missing field") {
    of_kind(j, 0, "compute").erase("waits");
    expected = {7101, {"op \"0F0: enter\"", "waits"}};
  }
  SUBCASE("fraction") {
    of_kind(j, 0, "compute")["stream"] = 0.5;
    expected = {7104, {"op \"0F0: enter\": stream", "0.5"}};
  }
  SUBCASE("range") {
    of_kind(j, 0, "compute")["position"] = 1ull << 40;
    expected = {7105, {"op \"0F0: enter\": position", "1099511627776"}};
  }
  SUBCASE("ops that are none") {
    ops(j, 0) = json::array({1, 2});
    expected = {7100, {"an op", "1"}};
  }
  CHECK(said_in(verify(j.dump())) == expected);
}

TEST_CASE("what is written twice is refused: one of the two would go unread") {
  auto text = sample();
  const auto insert = [&](const std::string& at, const std::string& more) {
    return text.insert(text.find(at), more);
  };
  CHECK(said_in(verify(insert("\"ops\":[", "\"ops\":[],"))) == said{7135, {"ops"}});
  text = sample();
  CHECK(said_in(verify(insert("\"programs\":[", "\"programs\":[],"))) == said{7135, {"programs"}});
  text = sample();
  CHECK(said_in(verify(insert("\"waits\":[", "\"waits\":[],"))) == said{7135, {"waits"}});
  text = sample();
  CHECK(said_in(verify(insert("\"world\": ", "\"world\": 1,"))) == said{7135, {"world"}});
}

TEST_CASE("text that is no certificate is answered with a sentence") {
  const auto said_of_text = [](const std::string& text) { return said_in(verify(text)); };
  const auto is_not_object = [](const char* found) { return said{7100, {"the document", found}}; };
  for (const std::string& text : {std::string(), std::string("{"), std::string(1 << 20, '[')})
    CHECK(said_of_text(text) == said{7128, {}});
  CHECK(said_of_text("[]") == is_not_object("a list"));
  CHECK(said_of_text(std::string(1 << 20, '[') + std::string(1 << 20, ']')) == is_not_object("a list"));
  CHECK(said_of_text("null") == is_not_object("null"));
  CHECK(said_of_text("3") == is_not_object("3"));
  CHECK(said_of_text("\"x\"") == is_not_object("\"x\""));
  CHECK(said_of_text("{}") == said{7101, {"the document", "format"}});
  CHECK(said_of_text("{\"format\":\"rankc certificate 10\"}") == said{7101, {"the document", "plan"}});
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
      for (auto& a : o["reads"]) CHECK(refused(a[2], 1000));  // a value that no op writes
      if (!o.contains("communicator")) continue;
      CHECK(refused(o["bytes"], 1));
      CHECK(refused(o["message"], 1));
      CHECK(refused(o["position"], 1));
    }
}

}  // namespace certificate_test
