// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <rankc/codegen/lowered.hpp>

#include <plans.hpp>

#include <algorithm>
#include <sstream>

#include "answers.hpp"
#include "check.hpp"
#include "dims.hpp"
#include "portfolio.hpp"
#include "search.hpp"
#include "token.hpp"

namespace rankc::tool {

namespace {

std::string ask(const char* schedule, int pp, int microbatches, const std::string& more = "") {
  return fmt::format(R"({{"schedule": "{}", "pp": {}, "microbatches": {}{}}})", schedule, pp, microbatches,
                     more);
}

/// A rank's lowered actions in order, as tokens.
std::vector<std::string> lowered_order(const codegen::pipeline_rank& r) {
  std::vector<std::string> out;
  for (const codegen::item& i : r.train.items) {
    const int stage = r.stages[i.stage].stage;
    const auto spelled = [&](token_kind kind) { out.push_back(spell({kind, stage, i.microbatch, -1})); };
    if (i.what == codegen::item_kind::forward) spelled(token_kind::F);
    if (i.what == codegen::item_kind::backward) spelled(token_kind::B);
    if (i.what == codegen::item_kind::send)
      spelled((r.train.values[i.data].what == codegen::kept::gradient) ? token_kind::SEND_B
                                                                       : token_kind::SEND_F);
    if (i.what == codegen::item_kind::receive)
      spelled((r.train.values[i.data].what == codegen::kept::gradient) ? token_kind::RECV_B
                                                                       : token_kind::RECV_F);
  }
  return out;
}

}  // namespace

TEST_CASE("an answer has every field of the interface") {
  CHECK(answer(ask("one_f_one_b", 2, 3)) ==
        json::parse(R"({"ok": true, "diagnostics": [], "stage_to_rank": [0, 1],
    "compute": [["0F0", "0F1", "0B0", "0F2", "0B1", "0B2"], ["1F0", "1B0", "1F1", "1B1", "1F2", "1B2"]],
    "program": [["0F0", "0SEND_F0", "0F1", "0SEND_F1", "0RECV_B0", "0B0", "0F2", "0SEND_F2", "0RECV_B1", "0B1",
                 "0RECV_B2", "0B2"],
                ["1RECV_F0", "1F0", "1RECV_F1", "1B0", "1SEND_B0", "1F1", "1B1", "1SEND_B1", "1RECV_F2", "1F2", "1B2",
                 "1SEND_B2"]],
    "makespan": 12.0, "program_makespan": 12.0, "lower_bound": 10.0, "bubble": 0.25, "window_bubble": 0.25,
    "bubble_per_rank": [0.25, 0.25], "peak_activations": [2, 1], "slots": [1, 3]})"));
}

TEST_CASE("a program under a plan's costs is the one that the lowering writes") {
  using programs::order;
  for (const order by : {order::gpipe, order::one_f_one_b, order::looped_bfs, order::interleaved})
    for (const int pp : {2, 3, 4}) {
      const plan_data plan = programs::make(programs::pipeline{"tiny_gpt2", "any", by, 1, 1, pp, 10});
      const codegen::lowered low = codegen::lower(plan, runtime::dtype::f64);
      const json costs{{"costs", {{"C", plan.expected.send}, {"stage", plan.expected.stage}}},
                       {"stages_per_rank", plan.actions.stages() / pp}};
      json line = json::parse(ask(std::string(plan.schedule).c_str(), pp, 10));
      line.update(costs);
      const json program = answer(line.dump())["program"];
      CAPTURE(plan.schedule);
      for (int r = 0; r < pp; ++r) CHECK(program[r] == json(lowered_order(low.ranks[r])));
    }
}

TEST_CASE("the bubble of GPipe and 1F1B is (pp - 1) / (microbatches + pp - 1)") {
  for (const char* name : {"gpipe", "one_f_one_b"})
    for (int pp = 1; pp <= 6; ++pp)
      for (int m = 1; m <= 12; ++m) {
        const json a = answer(ask(name, pp, m));
        CHECK(a["bubble"].get<double>() == doctest::Approx((pp - 1.0) / (m + pp - 1)));
        CHECK(a["makespan"].get<double>() == doctest::Approx(3 * (m + pp - 1)));
        CHECK(a["bubble_per_rank"].size() == static_cast<std::size_t>(pp));
        const int held = name[0] == 'g' ? m : std::min(m, pp);
        CHECK(a["peak_activations"][0] == held);
        CHECK(ids(check(program_of(a).dump())) == "");
      }
}

TEST_CASE("costs and the time of a message count") {
  const json a = answer(ask("gpipe", 2, 1, R"(, "costs": {"F": 2, "I": 3, "W": 5, "C": 0.5})"));
  CHECK(a["makespan"] == 2 + 0.5 + 2 + 8 + 0.5 + 8);
}

TEST_CASE("inference has forwards only and holds one microbatch") {
  const json a = answer(ask("one_f_one_b", 2, 2, R"(, "inference": true, "memory_limit": 1)"));
  CHECK(a["compute"] == json::parse(R"([["0F0", "0F1"], ["1F0", "1F1"]])"));
  CHECK(a["program"] ==
        json::parse(R"([["0F0", "0SEND_F0", "0F1", "0SEND_F1"], ["1RECV_F0", "1F0", "1RECV_F1", "1F1"]])"));
  CHECK(a["peak_activations"] == json::parse("[1, 1]"));
  CHECK(ids(check(program_of(a).dump())) == "");
}

TEST_CASE("what cannot be answered is refused with all reasons and their alternatives") {
  CHECK(ids(answer(R"({"schedule": "no_bubble", "pp": 0, "microbatches": 0})")) == "RC305 RC104 RC301");
  CHECK(text_of(answer(ask("no_bubble", 2, 2))) ==
        "schedule \"no_bubble\" is not one of this version's: " + schedule_names());
  CHECK(sentences(answer(R"({})")) == "RC8030 RC8030 RC8030");
  CHECK(said_of(answer(R"({"schedule": "gpipe", "microbatches": 1})")) == test::said{8030, {"pp"}});
  CHECK(sentences(answer(R"({"schedule": 1, "pp": 2.5, "microbatches": 4294967296})")) ==
        "RC8037 RC8031 RC8031");
  CHECK(said_of(answer(ask("gpipe", 2, 2, R"(, "inference": [1])"))) ==
        test::said{8036, {"inference", "[1]"}});
  CHECK(said_of(answer(ask("gpipe", 2, 2, R"(, "costs": 1)"))) == test::said{8044, {"costs", "1"}});
  CHECK(said_of(answer(R"({"csv": "0F0", "stage_to_rank": 0})")) == test::said{8038, {"stage_to_rank", "0"}});
  CHECK(sentences(answer(ask("gpipe", 2, 2, R"(, "costs": {"F": -1, "C": "x"}, "inference": 1)"))) ==
        "RC8036 RC8032 RC8032");
  CHECK(ids(answer(ask("gpipe", 2, 2, R"(, "stages_per_rank": 2)"))) == "RC306");
  CHECK(ids(answer(ask("gpipe", 2, 2,
                       R"(, "stages_per_rank": null, "memory_limit": null, "costs": {}, "x": 1)"))) == "");
  CHECK(ids(answer(ask("gpipe", 1 << 30, 1 << 30))) == "RC311");
}

TEST_CASE("a schedule that is written down is answered as one by name") {
  const json named = answer(ask("one_f_one_b", 2, 3));
  const std::string text = R"("csv": "0F0, 0F1, , 0B0, 0F2, 0B1, 0B2\n1F0, 1B0, 1F1, 1B1, 1F2, 1B2\n")";
  CHECK(answer("{" + text + "}") == named);
  CHECK(answer("{" + text + R"(, "pp": 2, "microbatches": 3, "stage_to_rank": [0, 1]})") == named);
  CHECK(sentences(answer("{" + text + R"(, "schedule": "gpipe"})")) == "RC8090");
  CHECK(text_of(answer("{" + text + R"(, "pp": 3})")) == "pp=3, but the text has 2 lines; take pp=2");
  CHECK(ids(answer("{" + text + R"(, "microbatches": 4})")) == "RC313");
  CHECK(said_of(answer("{" + text + R"(, "stage_to_rank": [0]})")) == test::said{8092, {"1", "2"}});
  CHECK(ids(answer("{" + text + R"(, "stage_to_rank": [1, 0]})")) == "RC302");
  CHECK(ids(answer("{" + text + R"(, "memory_limit": 1})")) == "RC307");
  CHECK(ids(answer(R"({"csv": "0F0, 0X0"})")) == "RC313");
  CHECK(ids(answer(R"({"csv": "0F0, 0B0\n1B0, 1F0"})")) == "RC304");
  CHECK(ids(answer(R"({"csv": "0F0, 0B0, 0REDUCE_GRAD"})")) == "RC303");
  CHECK(sentences(answer(R"({"csv": 5})")) == "RC8037");
  const json two_ways = answer(R"({"csv": "0F0, 1F1, 1B1, 0B0\n0F1, 1F0, 1B0, 0B1"})");
  CHECK(two_ways["stage_to_rank_rev"] == json::parse("[1, 0]"));
}

TEST_CASE("each stage may have costs of its own") {
  CHECK(answer(ask("gpipe", 2, 1, R"(, "costs": {"stage": [1, 2]})"))["makespan"] == 3 * (1 + 2));
  CHECK(said_of(answer(ask("gpipe", 2, 1, R"(, "costs": {"stage": [1, 2, 3]})"))) ==
        test::said{8093, {"3", "2"}});
  CHECK(sentences(answer(ask("best", 2, 2, R"(, "costs": {"stage": [1]})"))) == "RC8093");
  CHECK(ids(answer(ask("best", 2, 2, R"(, "costs": {"stage": [1, 1.5]})"))) == "");
  CHECK(ids(answer(ask("dual_pipe", 2, 2, R"(, "costs": {"stage": [1, 1.5]})"))) == "");
  CHECK(said_of(answer(ask("gpipe", 2, 1, R"(, "costs": {"stage": [1, -2]})"))) ==
        test::said{8039, {"stage", "[1,-2]"}});
}

TEST_CASE("a completed schedule has what a stage does once a step, and takes the time of it") {
  const json a =
      answer(ask("one_f_one_b", 2, 1, R"(, "complete": true, "costs": {"REDUCE_GRAD": 4, "STEP": 0.5})"));
  CHECK(a["compute"] ==
        json::parse(R"([["0F0", "0B0", "0REDUCE_GRAD", "0STEP"], ["1F0", "1B0", "1REDUCE_GRAD", "1STEP"]])"));
  CHECK(a["program"][1] == json::parse(R"(["1RECV_F0", "1F0", "1B0", "1SEND_B0", "1REDUCE_GRAD", "1STEP"])"));
  CHECK(a["makespan"] == 1 + 1 + 2 + 2 + 4 + 0.5);
  CHECK(answer(ask("looped_bfs", 2, 2, R"(, "complete": true, "inference": true)"))["compute"] ==
        answer(ask("looped_bfs", 2, 2, R"(, "inference": true)"))["compute"]);
  for (const known_schedule& s : portfolio()) {
    const json done = answer(ask(std::string(s.name).c_str(), 4, 6, R"(, "complete": true)"));
    CAPTURE(done.dump());
    CHECK(ids(check(program_of(done).dump())) == "");
  }
}

TEST_CASE("weights are gathered before a stage's first use, and let go where a rank may gather no more") {
  CHECK(answer(ask("gpipe", 1, 1, R"(, "gather": 1)"))["compute"] ==
        json::parse(R"([["0UNSHARD", "0F0", "0B0", "0RESHARD"]])"));
  CHECK(
      answer(ask("looped_bfs", 1, 1, R"(, "stages_per_rank": 2, "gather": 1)"))["compute"] ==
      json::parse(
          R"([["0UNSHARD", "0F0", "0RESHARD", "1UNSHARD", "1F0", "1B0", "1RESHARD", "0UNSHARD", "0B0", "0RESHARD"]])"));
  CHECK(said_of(answer(ask("gpipe", 1, 1, R"(, "gather": 0)"))) == test::said{8091, {"0"}});
  for (const known_schedule& s : portfolio()) {
    const json done = answer(ask(std::string(s.name).c_str(), 4, 6, R"(, "complete": true, "gather": 1)"));
    CAPTURE(done.dump());
    CHECK(ids(check(program_of(done).dump())) == "");
  }
}

TEST_CASE("a memory limit is kept or refused") {
  CHECK(ids(answer(ask("gpipe", 4, 8, R"(, "memory_limit": 8)"))) == "");
  const std::string too_much = text_of(answer(ask("gpipe", 4, 8, R"(, "memory_limit": 7.5)")));
  CHECK(too_much.starts_with(
      "rank 0 holds the activations of 8 microbatches at once, more than memory_limit=7.5; "
      "take one_f_one_b, which holds 4, or take "));
  CHECK(too_much.ends_with(", or at most 7 microbatches"));
  CHECK(text_of(answer(ask("one_f_one_b", 4, 8, R"(, "memory_limit": 1)"))) ==
        "rank 0 holds the activations of 4 microbatches at once, more than memory_limit=1; at most 1 "
        "microbatch");
  CHECK(text_of(answer(ask("gpipe", 4, 8, R"(, "memory_limit": 0)")))
            .ends_with("no schedule with stages_per_rank=1 holds so little; raise the limit to 8"));
  CHECK(
      text_of(answer(ask("dual_pipe", 4, 8, R"(, "memory_limit": 2)"))).ends_with("at most 2 microbatches"));
}

TEST_CASE("every schedule is there, with the stages and the messages that it has") {
  for (const known_schedule& s : portfolio())
    for (int pp : {1, 2, 4})
      for (int m : {2, 6, 9}) {
        const json a = answer(ask(std::string(s.name).c_str(), pp, m));
        CAPTURE(a.dump());
        if (ids(a).starts_with("RC312")) continue;  // dual_pipe with odd numbers
        REQUIRE(ids(a) == "");
        CHECK(ids(check(program_of(a).dump())) == "");
        json alone = program_of(a);
        alone["ranks"] = a["compute"];
        CHECK(ids(check(alone.dump())) == "");
        CHECK(a["program_makespan"] == a["makespan"]);  // messages take no time
        CHECK(a["makespan"] >= a["lower_bound"]);
      }
}

TEST_CASE("the search keeps the limit and is at least as good as what is published") {
  const std::string limits =
      R"(, "stages_per_rank": 2, "memory_limit": 6, "costs": {"I": 1.2, "W": 0.8, "C": 0.1})";
  const json found = answer(ask("best", 4, 8, limits));
  REQUIRE(ids(found) == "");
  CHECK(ids(check(program_of(found).dump())) == "");
  for (const json& held : found["peak_activations"]) CHECK(held <= 6);
  for (const char* published : {"v_half", "v_min", "one_f_one_b_v"})
    if (const json a = answer(ask(published, 4, 8, limits)); a["ok"] == true)
      CHECK(found["makespan"] <= a["makespan"]);
  CHECK(text_of(answer(ask("best", 4, 8, R"(, "stages_per_rank": 2, "memory_limit": 1)"))) ==
        "memory_limit=1, but one microbatch alone holds its activations of the 2 stages of a rank; take at "
        "least 2");
}

TEST_CASE("a bidirectional schedule says where both halves of its microbatches run") {
  const json a = answer(ask("dual_pipe", 2, 4));
  CHECK(a["stage_to_rank"] == json::parse("[0, 1]"));
  CHECK(a["stage_to_rank_rev"] == json::parse("[1, 0]"));
  CHECK(a["mb_split"] == 2);
  CHECK(a["compute"][0] ==
        json::parse(R"x(["0F0", "1F2", "0F1", "1B2", "OVERLAP(1F3,0B0)", "1B3", "0I1", "0W1"])x"));
}

TEST_CASE("stages of a rank can be asked for where the schedule leaves them free") {
  CHECK(answer(ask("looped_bfs", 2, 1, R"(, "stages_per_rank": 3)"))["stage_to_rank"] ==
        json::parse("[0, 1, 0, 1, 0, 1]"));
  CHECK(text_of(answer(ask("looped_bfs", 2, 1, R"(, "stages_per_rank": 0)"))) ==
        "stages_per_rank=0; a rank has at least 1");
  CHECK(text_of(answer(ask("zero_bubble_v", 2, 1, R"(, "stages_per_rank": 3)"))) ==
        "stages_per_rank=3, but zero_bubble_v places 2 on each rank; set stages_per_rank=2");
}

TEST_CASE("every line has an answer, in order") {
  std::istringstream in("{}\n\nnot JSON\r\n[1]\n\xff\n" + ask("gpipe", 1, 1) + "\r\n" + ask("gpipe", 1, 2));
  std::ostringstream out;
  CHECK(answer_lines(in, out, answer_schedule));
  std::istringstream answers(out.str());
  std::vector<json> read;
  for (std::string line; std::getline(answers, line);) read.push_back(json::parse(line));
  REQUIRE(read.size() == 7);
  for (int i : {1, 2, 4}) CHECK(sentences(read[i]) == "RC6596");
  CHECK(sentences(read[3]) == "RC8046");
  CHECK(read[5]["compute"] == json::parse(R"([["0F0", "0B0"]])"));
  CHECK(read[6]["compute"] == json::parse(R"([["0F0", "0F1", "0B0", "0B1"]])"));
}

TEST_CASE("a line that is nested deeply, or gives a key twice, is refused by every command") {
  const std::string deep(200'000, '['), shallow = deep.substr(0, 40);
  const answerer all[]{answer_schedule, answer_check, answer_dims, answer_search};
  for (const answerer& answer_one : all) {
    for (const std::string& nested : {deep, shallow})
      CHECK(sentences(json::parse(answer_line("{\"pp\": " + nested, answer_one))) == "RC6592");
    CHECK(sentences(json::parse(answer_line("{\"pp\": 2, \"pp\": 4}", answer_one))) == "RC6594");
  }
}

TEST_CASE("a line that is too long is refused, and the lines behind it are not read") {
  const std::string good = ask("gpipe", 1, 1) + "\n";
  std::istringstream in(good + std::string(longest_line + 2, ' ') + "\n" + good);
  std::ostringstream out;
  CHECK(answer_lines(in, out, answer_schedule));
  const std::string said = out.str();
  CHECK(std::count(said.begin(), said.end(), '\n') == 2);
  CHECK(sentences(json::parse(said.substr(said.find('\n')))) == "RC8047");
}

}  // namespace rankc::tool
