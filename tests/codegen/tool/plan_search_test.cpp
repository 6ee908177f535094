// SPDX-License-Identifier: Apache-2.0
// `rankc search` by rankc's own cost model: what it predicts is what a plan has, and what it finds no legal plan beats.
#include <doctest/doctest.h>

#include <rankc/cost_model/calibrations.hpp>
#include <rankc/make_plan.hpp>
#include <rankc/peak_bytes.hpp>
#include <rankc/schedules/zero_bubble_v.hpp>

#include <sstream>
#include <utility>

#include "answers.hpp"
#include "plan_request.hpp"
#include "search.hpp"

namespace rankc::tool {

namespace {

json search(const json& line) { return json::parse(answer_line(line.dump(), answer_search)); }

json line_of(int gpus, int global_batch) {
  return {{"cost_model", "rankc"}, {"model", "llama3-8b"}, {"cluster", "h200"}, {"gpus", gpus}, {"recipe", {{"seq", 8192}, {"global_batch", global_batch}}}};
}

const json small_model{{"family", "llama"}, {"layers", 4}, {"hidden", 1024}, {"heads", 16}, {"kv_heads", 4}, {"ffn", 2816}, {"vocab", 32000}};

std::string page(const json& line) {
  std::ostringstream out, errors;
  return show_search(line, out, errors) == 0 ? out.str() : errors.str();
}

}  // namespace

TEST_CASE("what is predicted of a line is what the plan has") {
  static constexpr auto written = plan{.model = models::llama{.layers = 32, .hidden = 4096, .heads = 32, .kv_heads = 8, .ffn = 14336, .vocab = 128256},
                                       .dims = parallel_dims{.world = 8, .dp_shard = 2, .tp = 2, .pp = 2, .sequence_parallel = true},
                                       .schedule = schedules::zero_bubble_v{.microbatches = 8},
                                       .recipe = training{.seq = 8192, .global_batch = 32, .precision = bf16, .recompute = {.full = true}},
                                       .cluster = clusters::h200<1>};
  json line = line_of(8, 32);
  line["predict"] = {{"pp", 2}, {"tp", 2}, {"dp_shard", 2}, {"schedule", "zero_bubble_v"}, {"microbatches", 8}, {"recompute", "full"}};
  const json answer = search(line);
  REQUIRE(answer["ok"] == true);
  const plan_data p = make_plan("written", written);
  REQUIRE(accepts(p.diagnostics));
  CHECK(answer["step_s"].get<double>() == cost_model::predict_step(p, cost_model::h200).step);
  CHECK(answer["memory_bytes"].get<std::size_t>() == rankc::detail::find_worst(p, target::cuda).bytes);
  CHECK(answer["fits"] == true);
  for (const cost_model::gpu_speed* g : cost_model::known) {
    line["cluster"] = g->name;
    CHECK(search(line)["step_s"].get<double>() == cost_model::predict_step(p, *g).step);
  }
}

TEST_CASE("a search answers with the plans that it ranks") {
  for (const auto& [gpus, gigabytes] : {std::pair{1, 20}, {2, 10}, {8, 6}}) {
    json line = line_of(gpus, 16);
    line["model"] = small_model;
    line["cluster"] = {{"gpu", "h200"}, {"memory_gb", gigabytes}};
    line["top"] = 3;
    report said;
    const plan_request r = read_plan_request(line, said);
    REQUIRE(accepts(said));
    const planner::ranking found = rank_plans(r.of, {3, true});
    REQUIRE(found.top.size() == 3);
    const json answer = search(line);
    CHECK(answer["candidates"] == count_choices(r.of));
    CHECK(answer["judged"] >= 3);
    CHECK(answer["judged"] <= answer["predicted"]);
    CHECK(answer["predicted"] <= answer["candidates"]);
    const auto check_same = [](const json& answered, const std::vector<judged_plan>& plans) {
      REQUIRE(answered.size() == plans.size());
      for (std::size_t i = 0; i < plans.size(); ++i) {
        CHECK(answered[i]["step_s"].get<double>() == plans[i].time.step);
        CHECK(answered[i]["memory_bytes"].get<std::size_t>() == plans[i].bytes);
      }
    };
    check_same(answer["top"], found.top);
    check_same(answer["pareto"], found.front);
    for (const judged_plan& j : found.front) CHECK(j.bytes <= static_cast<std::size_t>(gigabytes) * 1'000'000'000);
    line["top"] = 1;
    CHECK(search(line)["top"].size() == 1);
    CHECK(search(line)["why"] == answer["why"]);
  }
}

TEST_CASE("a rank alone keeps one microbatch") {
  json line = line_of(8, 128), few = line_of(8, 16);
  for (auto [asked, microbatches] : {std::pair{&line, 16}, {&few, 2}})
    (*asked)["predict"] = {{"dp_shard", 8}, {"schedule", "one_f_one_b"}, {"microbatches", microbatches}};
  CHECK(search(line)["memory_bytes"].get<double>() < 1.01 * search(few)["memory_bytes"].get<double>());
  report said;
  for (const judged_plan& j : rank_plans(read_plan_request(line, said).of, {50, true}).top)
    CHECK((j.choice.dims.pp > 1 || j.choice.schedule.name == "one_f_one_b"));
}

TEST_CASE("a search says what limits the best plan") {
  const json answer = search(line_of(8, 32));
  CHECK(answer["why"].get<std::string>().starts_with("products take "));
  CHECK(answer["sensitivity"]["power"].get<double>() < -0.5);  // long steps of large products
  CHECK(answer["sensitivity"]["network"].get<double>() == 0);  // one node
  CHECK(page(line_of(8, 32)).starts_with("llama3-8b on 8 GPUs h200 of 141 GB: "));
  json line = line_of(1, 1);
  CHECK(search(line)["why"] == "no plan fits");
}

TEST_CASE("lines that ask nothing are refused") {
  const auto said = [](json line) {
    const json answer = search(line);
    CHECK(answer["ok"] == false);
    return answer["diagnostics"][0]["text"].get<std::string>();
  };
  json line = line_of(8, 32);
  line.erase("gpus");
  CHECK(said(line) == "the line has no gpus, which it needs");
  line = line_of(8, 32), line["model"] = "llama4";
  CHECK(said(line).starts_with("model is \"llama4\"; it must be one of gpt2-124m, "));
  line = line_of(1 << 20, 32);
  CHECK(said(line) == "gpus is 1048576; it must be at most 16384");
  line = line_of(8, 32), line["model"] = {{"family", "llama"}, {"layers", 2}};
  CHECK(said(line) == "the line has no hidden, which it needs");
  line = line_of(8, 32), line["strategy"] = "1d";
  CHECK(said(line).find("strategy") != std::string::npos);
  line = line_of(8, 32), line["predict"] = {{"pp", 3}};
  CHECK(search(line)["diagnostics"][0]["id"] == "RC101");
  line["predict"] = {{"tp", 8}, {"microbatches", 5}};
  CHECK(search(line)["diagnostics"][0]["id"] == "RC221");
}

}  // namespace rankc::tool
