// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <sstream>

#include "answers.hpp"

namespace rankc::tool {

namespace {

json program(const char* schedule, int pp, int microbatches) {
  return program_of(answer(json{{"schedule", schedule}, {"pp", pp}, {"microbatches", microbatches}}.dump()));
}

/// Split "0F0 0B0
///  1F0 1B0" into ranks; the placement is not given.
json line(const std::string& text) {
  json ranks = json::array({json::array()});
  std::istringstream words(text);
  for (std::string w; words >> w;)
    if (w == "|") ranks.push_back(json::array());
    else ranks.back().push_back(w);
  return {{"ranks", ranks}};
}

std::string verdict(const json& j) { return ids(check(j.dump())); }
std::string verdict(const char* text) { return verdict(line(text)); }
std::string refused(const json& j) { return sentences(check(j.dump())); }
std::string said(const char* text) { return text_of(check(line(text).dump())); }

}  // namespace

TEST_CASE("no token of a program can be left out, repeated or given to another rank") {
  for (const char* name : {"gpipe", "one_f_one_b"}) {
    const json good = program(name, 3, 4);
    REQUIRE(verdict(good) == "");
    for (std::size_t r = 0; r < 3; ++r)
      for (std::size_t i = 0; i < good["ranks"][r].size(); ++i) {
        json dropped = good, repeated = good, moved = good;
        dropped["ranks"][r].erase(i);
        dropped["microbatches"] = 4;
        repeated["ranks"][r].push_back(good["ranks"][r][i]);
        moved["ranks"][r].erase(i);
        moved["ranks"][(r + 1) % 3].push_back(good["ranks"][r][i]);
        const bool is_message = good["ranks"][r][i].get<std::string>().find('_') != std::string::npos;
        CHECK(verdict(dropped) == (is_message ? "RC308" : "RC303"));
        CHECK(verdict(repeated) == "RC302");
        CHECK(verdict(moved) == "RC302");
      }
  }
}

TEST_CASE("order on one rank is that of the data") {
  CHECK(verdict("0B0 0F0") == "RC304");
  CHECK(said("0B0 0F0") ==
        "rank 0 has 0B0 (item 0) before 0F0 (item 1), which it needs; order each rank's actions by their "
        "data");
  CHECK(verdict("0F0 0I0 0W0") == "");
  CHECK(verdict("0F0 0W0 0I0") == "RC304");
  CHECK(verdict("0F0 1F0 1B0 0B0") == "");
  CHECK(verdict("1F0 0F0 1B0 0B0") == "RC304");
  CHECK(verdict("0F0 1F0 0B0 1B0") == "RC304");
  CHECK(verdict("0F0 0F1 OVERLAP(0B0,0B1)") == "");
  CHECK(said("OVERLAP(0F0,0B0)") ==
        "rank 0 overlaps 0B0 with 0F0, which it needs (item 0); order each rank's actions by their data");
}

TEST_CASE("a backward is whole or in two halves") {
  CHECK(verdict("0F0 0I0") == "RC303");
  CHECK(said("0F0 0I0") == "stage 0 never runs the weight gradient 0W0, the other half of its I");
  CHECK(said("0F0 0B0 0W0") == "stage 0 runs its backward 0B0 and also a part of it, an I or a W");
  CHECK(verdict("0F0 0W0 0F1 0B1") == "RC303");
  CHECK(said("0F0 0W0 0F1 0B1") == "stage 0 never runs the input gradient 0I0, the other half of its W");
  CHECK(verdict("0F0 0B0 0W0") == "RC302");
  CHECK(verdict("0F0 0F1 0B0") == "RC303");
  CHECK(verdict("0F0 0F1") == "");  // inference
  json j = line("0F0 0F1");
  j["inference"] = false;
  CHECK(verdict(j) == "RC303");
  j = line("0F0 0B0");
  j["inference"] = true;
  CHECK(verdict(j) == "RC302");
}

TEST_CASE("recomputation lies between the forward and the backward") {
  CHECK(verdict("0F0 0R0 0B0") == "");
  CHECK(verdict("0R0 0F0 0B0") == "RC304");
  CHECK(verdict("0F0 0B0 0R0") == "RC304");
  CHECK(verdict("0F0 0R0 0R0 0B0") == "RC302");
}

TEST_CASE("splits of a sequence run forward from the first and backward from the last") {
  CHECK(verdict("0F0.0 0F0.1 0B0.1 0B0.0") == "");
  CHECK(verdict("0F0.1 0F0.0 0B0.1 0B0.0") == "RC304");
  CHECK(verdict("0F0.0 0F0.1 0B0.0 0B0.1") == "RC304");
  CHECK(verdict("0F0.0 0F0.1 0B0.1") == "RC303");
  CHECK(verdict("0F0.0 0F0.1 0B0 0B0.0") == "RC302");
}

TEST_CASE("a message has two ends in the right places") {
  CHECK(verdict("0F0 0SEND_F0 | 1RECV_F0 1F0") == "");
  CHECK(verdict("0SEND_F0 0F0 | 1RECV_F0 1F0") == "RC308");
  CHECK(verdict("0F0 0SEND_F0 | 1F0 1RECV_F0") == "RC308");
  CHECK(verdict("0F0 0SEND_F0 | 1F0") == "RC308");
  CHECK(verdict("0F0 | 1RECV_F0 1F0") == "RC308");
  CHECK(verdict("0F0 0SEND_F0 1F0") == "RC308");                      // to the sender itself
  CHECK(verdict("0F0 0SEND_F0 | 1RECV_F0 1F0 1SEND_F0") == "RC308");  // past the last stage
  CHECK(verdict("0RECV_F0 0F0 0SEND_F0 | 1RECV_F0 1F0") == "RC308");
  CHECK(verdict("0F0 0SEND_F0 0RECV_B0 | 1RECV_F0 1F0 1SEND_B0") == "RC308");  // nothing makes a gradient
  CHECK(verdict("0F0 BATCH(0SEND_F0,0RECV_B0) 0B0 | 1RECV_F0 1F0 1B0 1SEND_B0") == "");
}

TEST_CASE("messages between two ranks are received in the order they are sent") {
  CHECK(verdict("0F0 0F1 0SEND_F0 0SEND_F1 | 1RECV_F0 1RECV_F1 1F0 1F1") == "");
  CHECK(verdict("0F0 0F1 0SEND_F0 0SEND_F1 | 1RECV_F1 1RECV_F0 1F0 1F1") == "RC309");
  CHECK(said("0F0 0F1 0SEND_F0 0SEND_F1 | 1RECV_F1 1RECV_F0 1F0 1F1") ==
        "message 0 from rank 0 to rank 1 is sent as 0SEND_F0 (item 2) and received as 1RECV_F1 (item 0); "
        "messages have no "
        "tags, receive them in the order they are sent");
  CHECK(verdict("0F0 0F1 BATCH(0SEND_F0,0SEND_F1) | BATCH(1RECV_F1,1RECV_F0) 1F0 1F1") == "RC309");
}

TEST_CASE("a ring of waits is named") {
  // Both ranks compute first what needs the other's message: no order of messages helps.
  const char* ring = "0F0 3F0 0F1 3F1 | 1F0 1F1 2F0 2F1";
  CHECK(verdict(ring) == "RC304");
  CHECK(
      said(ring) ==
      "the program deadlocks (data order): rank 0's 3F0 (item 1) waits for rank 1's 2F0 (item 2), which "
      "waits for "
      "rank 1's 1F1 (item 1), which waits for rank 0's 0F1 (item 2), which waits for rank 0's 3F0 (item 1)");
}

TEST_CASE("a message waits for what its rank computes before it") {
  CHECK(verdict("0F0 0SEND_F0 0RECV_B0 0B0 | 1RECV_F0 1F0 1B0 1SEND_B0") == "");
  // Rank 0 sends its forward's output after the backward that depends on it.
  const char* late = "0F0 0RECV_B0 0B0 0SEND_F0 | 1RECV_F0 1F0 1B0 1SEND_B0";
  CHECK(verdict(late) == "RC304");
  CHECK(said(late).find("waits for the message 0SEND_F0 -> 1RECV_F0 (rank 0 item 3, rank 1 item 0), which "
                        "waits for rank 0's 0B0 (item 2)") != std::string::npos);
}

TEST_CASE("who queues behind whom depends on the runtime") {
  // 1F1B with each receive before its neighbouring send. rankc has a stream for each direction; a single
  // communicator does not.
  json j = program("one_f_one_b", 2, 4);
  CHECK(verdict(j) == "");
  for (const auto& [queues, expected] : {std::pair("edge", ""), std::pair("pair", "RC304"),
                                         std::pair("rank", "RC304"), std::pair("ring", "RC300")}) {
    j["queues"] = queues;
    CHECK(verdict(j) == expected);
  }
  j.erase("queues");
  j["source"] = "another system";
  CHECK(verdict(j) == "RC304");
  j["source"] = "rankc 0.1.0";
  CHECK(verdict(j) == "");

  json crossing = line(
      "0F0 0F1 0SEND_F0 0SEND_F1 0RECV_B0 0RECV_B1 0B0 0B1 | 1RECV_F0 1F0 1B0 1SEND_B0 1RECV_F1 1F1 1B1 "
      "1SEND_B1");
  CHECK(verdict(crossing) == "");
  crossing["queues"] = "pair";
  CHECK(text_of(check(crossing.dump())) ==
        "the program deadlocks (messages queue for each peer): the message 1SEND_B0 -> 0RECV_B0 (rank 1 "
        "item 3, rank 0 item 4) "
        "waits for the message 0SEND_F1 -> 1RECV_F1 (rank 0 item 3, rank 1 item 4), which waits for the "
        "message 1SEND_B0 -> 0RECV_B0 "
        "(rank 1 item 3, rank 0 item 4)");
}

TEST_CASE("a stage is gathered while it computes, and reduced after") {
  CHECK(verdict("0UNSHARD 0F0 0RESHARD 0UNSHARD 0B0 0REDUCE_GRAD 0RESHARD") == "");
  CHECK(verdict("0F0 0B0 0REDUCE_GRAD") == "");
  CHECK(verdict("0F0 0UNSHARD 0B0") == "RC310");
  CHECK(verdict("0UNSHARD 0UNSHARD 0F0 0B0") == "RC310");
  CHECK(verdict("0UNSHARD 0F0 0B0 0RESHARD 0RESHARD") == "RC310");
  CHECK(verdict("0F0 0REDUCE_GRAD 0B0") == "RC310");
  CHECK(verdict("0F0 0B0 0REDUCE_GRAD 0REDUCE_GRAD") == "RC310");
  CHECK(verdict("0F0 0B0 0REDUCE_GRAD 0STEP") == "");
  CHECK(verdict("0F0 0B0 0REDUCE_GRAD 0STEP 0STEP") == "RC310");
  CHECK(verdict("0UNSHARD 0F0 0B0 0REDUCE_GRAD 0STEP 0RESHARD") == "RC310");
  CHECK(verdict("0F0 0B0 0STEP") == "RC303");
  CHECK(verdict("0F0 1F0 1B0 1REDUCE_GRAD 1STEP 0B0 0REDUCE_GRAD 0STEP") == "RC304");
  CHECK(verdict("0F0 1UNSHARD | 1F0") == "RC302");
  CHECK(said("0F0 1UNSHARD | 1F0") == "rank 0 has 1UNSHARD (item 1), but stage 1 is on rank 1");
  CHECK(verdict("0F0 1UNSHARD") == "RC302");
}

TEST_CASE("stages on two ranks each (DualPipe)") {
  json j = line("0F0 1F1 1B1 0B0 | 1F0 0F1 1B0 0B1");
  j["mb_split"] = 1;
  j["stage_to_rank"] = {0, 1};
  CHECK(verdict(j) == "");
  j["stage_to_rank_rev"] = {1, 0};
  CHECK(verdict(j) == "");
  j["stage_to_rank_rev"] = {0, 1};
  CHECK(verdict(j) == "RC302");
  j["stage_to_rank_rev"] = {0};
  CHECK(said_of(check(j.dump())) == test::said{8085, {"1", "2"}});
}

TEST_CASE("two ranks that share stages reduce them in one order, each after its last backward") {
  const auto of = [](const char* text) {
    json j = line(text);
    j["mb_split"] = 1;
    j["stage_to_rank"] = {0, 1};
    j["stage_to_rank_rev"] = {1, 0};
    return verdict(j);
  };
  const std::string zero = "0F0 1F1 1B1 0B0 ", one = "1F0 0F1 1B0 0B1 ";
  const std::string same = "0REDUCE_GRAD 1REDUCE_GRAD 0STEP 1STEP",
                    other = "1REDUCE_GRAD 0REDUCE_GRAD 0STEP 1STEP";
  CHECK(of((zero + same + " | " + one + same).c_str()) == "");
  CHECK(of((zero + other + " | " + one + other).c_str()) == "");
  CHECK(of((zero + same + " | " + one + other).c_str()) == "RC304");
}

TEST_CASE("what is no program is refused, whatever its numbers") {
  for (const char* token : {"", "F0", "0F", "0X0", "-1F0", "0F0 ", "0F0.", "0F1.x", "0UNSHARD0",
                            "OVERLAP(0F0)", "OVERLAP(0F0,0B0,0W0)", "OVERLAP(0F0,0SEND_F0)", "BATCH(",
                            "BATCH()", "BATCH(0F0)", "BATCH(0SEND_F0,)", "9999999999F0", "0f0"})
    CHECK(said_of(check(json{{"ranks", {{token}}}}.dump())) == test::said{8080, {"1", token, "0", "0"}});
  CHECK(said_of(check(line("0F0 0X0 | F0 0B0").dump())) == test::said{8080, {"2", "0X0", "1", "0"}});
  CHECK(refused(json{{"ranks", json::array()}}) == "RC8082");
  CHECK(refused(json{{"ranks", {{"0F0", 1}}}}) == "RC8040");
  CHECK(refused(json::object()) == "RC8030");
  json j = line("0F0 0B0");
  j["pp"] = 2;
  CHECK(said_of(check(j.dump())) == test::said{8083, {"2", "1"}});
  j = line("0F0 0B0");
  j["stage_to_rank"] = {0, 1};
  CHECK(said_of(check(j.dump())) == test::said{8081, {"stage_to_rank", "1", "1"}});
  j["stage_to_rank"] = {0, 0};
  CHECK(verdict(j) == "RC303");
  j["stages_per_rank"] = 3;
  CHECK(verdict(j) == "RC303");
  j["stages_per_rank"] = 1;
  CHECK(verdict(j) == "RC302");
  for (const char* field : {"microbatches", "stages_per_rank", "seq_splits"}) {
    j = line("0F0 0B0");
    j[field] = 2147483647;
    CHECK(verdict(j) != "");
    j[field] = 0;
    CHECK(refused(j) == "RC8084");
  }
  CHECK(verdict("999999999F0") == "RC303");
  CHECK(verdict("0F999999999") == "RC303");
}

}  // namespace rankc::tool
