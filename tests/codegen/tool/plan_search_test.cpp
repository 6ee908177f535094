// SPDX-License-Identifier: Apache-2.0
// `rankc search` by rankc's own cost model: it predicts a plan's real figures, and no legal plan beats its
// result.
#include <doctest/doctest.h>

#include <rankc/cost_model/calibrations.hpp>
#include <rankc/plan/make_plan.hpp>
#include <rankc/peak_bytes.hpp>
#include <rankc/schedules/zero_bubble_v.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <thread>
#include <utility>

#include "../../said.hpp"
#include "../../scratch_folder.hpp"
#include "answers.hpp"
#include "plan_progress.hpp"
#include "plan_request.hpp"
#include "search.hpp"
#include "speed_members.hpp"

namespace rankc::tool {

namespace {

json search(const json& line) { return json::parse(answer_line(line.dump(), answer_search)); }

json line_of(int gpus, int global_batch) {
  return {{"cost_model", "rankc"},
          {"model", "llama3-8b"},
          {"cluster", "h200"},
          {"gpus", gpus},
          {"recipe", {{"seq", 8192}, {"global_batch", global_batch}}}};
}

const json small_model{{"family", "llama"}, {"layers", 4}, {"hidden", 1024}, {"heads", 16},
                       {"kv_heads", 4},     {"ffn", 2816}, {"vocab", 32000}};

/// The elements that a page opens without closing, or closes without opening.
std::string open_elements(std::string_view page) {
  std::vector<std::string> open;
  for (std::size_t at = page.find('<'); at != page.npos; at = page.find('<', at + 1)) {
    const std::size_t end = page.find('>', at);
    if (end == page.npos) return "an end of a tag";
    const std::string_view tag = page.substr(at + 1, end - at - 1);
    if (tag.starts_with('!') || tag.ends_with('/')) continue;
    if (!tag.starts_with('/')) open.emplace_back(tag.substr(0, tag.find(' ')));
    else if (open.empty() || open.back() != tag.substr(1)) return std::string(tag);
    else open.pop_back();
  }
  return open.empty() ? "" : open.back();
}

std::string page(const json& line) {
  std::ostringstream out, errors;
  return show_search(line, out, errors) == 0 ? out.str() : errors.str();
}

}  // namespace

TEST_CASE("what is predicted of a line is what the plan has") {
  static constexpr auto written = plan{
      .model =
          models::llama{
              .layers = 32, .hidden = 4096, .heads = 32, .kv_heads = 8, .ffn = 14336, .vocab = 128256},
      .dims = parallel_dims{.world = 8, .dp_shard = 2, .tp = 2, .pp = 2, .sequence_parallel = true},
      .schedule = schedules::zero_bubble_v{.microbatches = 8},
      .recipe = training{.seq = 8192, .global_batch = 32, .precision = bf16, .recompute = {.full = true}},
      .cluster = clusters::h200<1>};
  json line = line_of(8, 32);
  line["predict"] = {{"pp", 2},           {"tp", 2},
                     {"dp_shard", 2},     {"schedule", "zero_bubble_v"},
                     {"microbatches", 8}, {"recompute", "full"}};
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

TEST_CASE("a qwen2 is predicted as the plan of it, and written as one") {
  static constexpr auto written = plan{
      .model =
          models::qwen2{.layers = 4, .hidden = 1024, .heads = 16, .kv_heads = 4, .ffn = 2816, .vocab = 32000},
      .dims = parallel_dims{.world = 2, .dp_shard = 2},
      .schedule = schedules::gpipe{.microbatches = 1},
      .recipe = training{.seq = 8192, .global_batch = 32, .precision = bf16},
      .cluster = clusters::h200<1>};
  json line = line_of(2, 32);
  line["model"] = small_model;
  line["model"]["family"] = "qwen2";
  const plan_data p = make_plan("written", written);
  REQUIRE(accepts(p.diagnostics));
  json asked = line;
  asked["predict"] = {{"dp_shard", 2}, {"microbatches", 1}};
  const json answer = search(asked);
  REQUIRE(answer["ok"] == true);
  CHECK(answer["memory_bytes"].get<std::size_t>() == rankc::detail::find_worst(p, target::cuda).bytes);
  CHECK(answer["step_s"].get<double>() == cost_model::predict_step(p, cost_model::h200).step);
  asked["model"]["family"] = "llama";  // Llama has no biases
  CHECK(search(asked)["memory_bytes"] < answer["memory_bytes"]);
  const scratch_folder s;
  const std::string header = (s.path / "plan.hpp").string();
  std::ostringstream errors;
  REQUIRE(write_plans(line, {.header = header, .page = ""}, errors, false) == 0);
  std::ostringstream text;
  text << std::ifstream(header).rdbuf();
  CHECK(text.str().find("models::qwen2{.layers = 4, .hidden = 1024, .heads = 16, .kv_heads = 4, .ffn = 2816, "
                        ".vocab = 32000}") != std::string::npos);
}

TEST_CASE("every family is searched by its sizes, and its plan is written with its header") {
  for (const model_family& family : model_families()) {
    CAPTURE(family.name);
    json line = line_of(2, 4);
    line["recipe"]["seq"] = 256;
    line["model"] = {{"family", family.name}};
    const std::map<std::string_view, int> sizes{
        {"layers", 2}, {"hidden", 64}, {"heads", 4},   {"kv_heads", 2}, {"head_dim", 16},
        {"ffn", 128},  {"vocab", 256}, {"experts", 4}, {"top_k", 2},    {"expert_ffn", 32}};
    for (const std::string_view name : family.sizes) line["model"][name] = sizes.at(name);
    const scratch_folder s;
    const std::string header = (s.path / "plan.hpp").string();
    std::ostringstream errors, text;
    CHECK(write_plans(line, {.header = header, .page = ""}, errors, false) == 0);
    CHECK(errors.str() == "");
    text << std::ifstream(header).rdbuf();
    CHECK(text.str().find(fmt::format("#include <rankc/models/{}.hpp>\n", family.name)) != std::string::npos);
    CHECK(text.str().find(fmt::format(".model = models::{}{{.layers = 2, .hidden = 64, ", family.name)) !=
          std::string::npos);
    line["model"]["patch"] = 16;
    CHECK(write_plans(line, {.header = header, .page = ""}, errors, false) == 1);
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
    const plan_search::ranking found = rank_plans(r.of, {3, true});
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
    for (const judged_plan& j : found.front)
      CHECK(j.bytes <= static_cast<std::size_t>(gigabytes) * 1'000'000'000);
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
  CHECK(page(line_of(8, 32)).starts_with("llama3-8b on 8 GPUs h200 of 141 GB: "));
  CHECK(page(line_of(8, 32)).find("1 % more of a constant changes the step most for power (-") !=
        std::string::npos);
}

TEST_CASE("a search says what its step is sensitive to, of every constant") {
  const json answer = search(line_of(8, 32)), two_nodes = search(line_of(16, 16));
  // Large GEMMs run long enough to reach the power limit.
  CHECK(answer["sensitivity"]["power"].get<double>() < -0.5);
  CHECK(answer["sensitivity"].begin().key() == "power");        // the largest sensitivity comes first
  CHECK(!answer["sensitivity"].contains("network.latency"));    // one node: no network
  CHECK(!answer["sensitivity"].contains("forward.64.joules"));  // heads have 128 elements
  CHECK(two_nodes["sensitivity"].contains("network.latency"));
  cost_model::gpu_speed g = cost_model::h200;
  std::set<double*> members;
  for (const speed_member& m : speed_members) members.insert(&m.of(g));
  CHECK(members.size() == std::size(speed_members));
  // The name, and the pointers to GPUs.
  CHECK(sizeof g == sizeof g.name + sizeof(double) + members.size() * sizeof(double));
}

TEST_CASE("where no plan fits, the one that comes nearest is named") {
  json line = line_of(1, 1);
  CHECK(search(line)["why"] ==
        "no plan fits in 141.0 GB; the one that needs least, one rank, one_f_one_b of 1 microbatch, "
        "repeating layers, needs 151.5 GB, "
        "10.5 GB more than there is");
  CHECK(search(line)["top"].empty());
  line["cluster"] = {{"gpu", "h200"}, {"memory_gb", 152}};
  CHECK(search(line)["top"].size() == 1);
  CHECK(search(line)["why"].get<std::string>().ends_with("no other plan fits"));
}

TEST_CASE("where there is no plan, the rule and what is legal are named") {
  CHECK(search(line_of(7, 1))["why"] ==
        "each of 3 plans breaks a rule; tp 7, one_f_one_b of 1 microbatch: RC202: heads=32 does not divide "
        "by tp=7: take tp=1 "
        "(with dp_replicate=infer)");
  const json answer = search(line_of(64, 1));
  CHECK(answer["candidates"] == 0);
  CHECK(answer["why"] ==
        "64 GPUs cannot split 1 sequence: tp is at most the 8 ranks of a node, each pipeline rank needs "
        "a microbatch, and all data-parallel ranks need equal numbers of sequences; set global_batch=8, or "
        "gpus=8");
}

TEST_CASE("GPUs in domains that do not divide, odd numbers of GPUs, of layers and of sequences") {
  const auto first = [](json line, const json& cluster) {
    line["model"] = small_model;
    line["recipe"]["seq"] = 1024;
    line["cluster"] = cluster;
    line["top"] = 1;
    const json answer = search(line);
    REQUIRE(answer["ok"] == true);
    REQUIRE(answer["top"].size() == 1);
    // The search reports its winner's time exactly as `predict` does.
    json asked = line, predict = answer["top"][0]["dims"];
    for (const char* name : {"schedule", "microbatches", "recompute"}) predict[name] = answer["top"][0][name];
    asked["predict"] = predict;
    if (answer["top"][0]["stages_per_rank"] != 1)
      asked["predict"]["stages_per_rank"] = answer["top"][0]["stages_per_rank"];
    CHECK(search(asked)["step_s"] == answer["top"][0]["step_s"]);
    CHECK(search(asked)["memory_bytes"] == answer["top"][0]["memory_bytes"]);
    return answer["top"][0]["dims"]["world"].get<int>();
  };
  const json of_72{{"gpu", "h200"}, {"ranks_per_node", 72}};
  CHECK(first(line_of(72, 72), of_72) == 72);
  CHECK(first(line_of(96, 96), of_72) == 96);  // the second node is one third full
  CHECK(first(line_of(12, 48), "h200") == 12);
  CHECK(first(line_of(13, 26), "h200") == 13);
  CHECK(first(line_of(1, 1), "h100") == 1);
  json line = line_of(4, 4);
  line["model"] = small_model;
  line["model"]["layers"] = 1;
  CHECK(search(line)["top"].size() == 10);
}

TEST_CASE("a page has every winner, and is well formed") {
  const std::string file =
      std::string(std::getenv("TMPDIR") ? std::getenv("TMPDIR") : "/tmp") + "/rankc_plans_test.html";
  std::ostringstream errors;
  REQUIRE(write_plans(line_of(8, 32), {.header = "", .page = file}, errors, false) == 0);
  CHECK(errors.str().empty());
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  std::filesystem::remove(file);
  CHECK(open_elements(text.str()) == "");
  report said;
  const plan_search::ranking found = rank_plans(read_plan_request(line_of(8, 32), said).of, {10, true});
  for (const std::vector<judged_plan>* plans : {&found.top, &found.front})
    for (const judged_plan& j : *plans)
      CHECK(text.str().find("<td>" + text_of(j.choice) + "</td>") != std::string::npos);
  CHECK(text.str().find("a GPU has 141 GB") != std::string::npos);
  CHECK(text.str().find("Products take ") != std::string::npos);
  CHECK(text.str().find('@') == std::string::npos);
  CHECK(write_plans(line_of(8, 32), {.header = "", .page = "/no/such/folder/plans.html"}, errors, false) ==
        1);
  CHECK(errors.str().starts_with("error: RC"));
  CHECK(test::said_in(errors.str()) ==
        test::said{5005, {"/no/such/folder/plans.html", "No such file or directory"}});
}

TEST_CASE("a search does not write over files of something else, and replaces its own") {
  const scratch_folder s;
  const std::string header = (s.path / "plan.hpp").string(), page = (s.path / "plans.html").string(),
                    text = (s.path / "t").string();
  std::ofstream(text) << "a text of someone's\n";
  const auto written = [](const plan_files& files) {
    std::ostringstream errors;
    const int code = write_plans(line_of(8, 32), files, errors, false);
    return std::to_string(code) + " " + errors.str();
  };
  const auto refused = [&](const plan_files& files) {
    const std::string told = written(files);
    CHECK(told.starts_with("2 error: RC"));
    return test::said_in(told);
  };
  CHECK(refused({.header = text, .page = ""}) == test::said{5021, {"--emit " + text, "a header of --emit"}});
  CHECK(refused({.header = "", .page = text}) == test::said{5021, {"--html " + text, "a page of --html"}});
  CHECK(refused({.header = header, .page = header}) ==
        test::said{5020, {"--html " + header, "--emit " + header}});
  CHECK_FALSE(std::filesystem::exists(header));
  for (int time = 0; time < 2; ++time) CHECK(written({.header = header, .page = page}) == "0 ");
  CHECK(std::filesystem::file_size(text) == 20);
}

TEST_CASE("how far a search is, is said on terminals alone") {
  std::ostringstream out, errors;
  CHECK(show_search(line_of(8, 32), out, errors, false) == 0);
  CHECK(errors.str().empty());
  {
    progress_line progress(errors, true);
    std::this_thread::sleep_for(std::chrono::milliseconds(600));
    progress.hears()({.predicted = 12, .judged = 3}, 45);
    CHECK(errors.str() == "\r12 plans timed, 3 judged, 45 to look at\x1b[K");
  }
  CHECK(errors.str().ends_with("\r\x1b[K"));
}

TEST_CASE("the fields of the recipe may be the line's own") {
  json line = line_of(8, 32);
  line["top"] = 1;
  const json nested = search(line);
  line.erase("recipe");
  line["seq"] = 8192;
  line["global_batch"] = 32;
  CHECK(nested["ok"] == true);
  CHECK(search(line) == nested);
}

TEST_CASE("lines that ask nothing are refused") {
  const auto said = [](json line) {
    const json answer = search(line);
    CHECK(answer["ok"] == false);
    return answer["diagnostics"][0]["text"].get<std::string>();
  };
  const auto refused = [](const json& line) { return said_of(search(line)); };
  json line = line_of(8, 32);
  line.erase("gpus");
  CHECK(refused(line) == test::said{8030, {"gpus"}});
  line = line_of(8, 32);
  line["model"] = "llama4";
  CHECK(refused(line) ==
        test::said{8041,
                   {"model", "\"llama4\"",
                    "gpt2-124m, gpt2-1.5b, llama3-8b, llama3-70b, llama3-405b, mixtral-8x7b, "
                    "qwen3-30b-a3b"}});
  line = line_of(1 << 20, 32);
  CHECK(refused(line) == test::said{8034, {"gpus", "1048576", "16384"}});
  line = line_of(8, 32);
  line["model"] = {{"family", "llama"}, {"layers", 2}};
  CHECK(refused(line) == test::said{8030, {"hidden"}});
  line["model"] = {{"family", "vision_transformer"}, {"layers", 4}, {"patch", 16}, {"classes", 4}};
  CHECK(refused(line) ==
        test::said{
            8041,
            {"family", "\"vision_transformer\"",
             "gpt2, llama, qwen2, qwen3, qwen3_moe, mixtral, olmo2, mistral, smollm3, phi3, glm4, gemma3"}});
  CHECK(search(line)["diagnostics"].size() == 1);
  line = line_of(8, 32);
  line["cluster"] = {{"gpu", "h200"}, {"memory_gb", 0}};
  CHECK(refused(line) == test::said{8070, {"0", "1000000"}});
  line["cluster"] = {{"gpu", "h200"}, {"memory_gb", 1e300}};
  CHECK(refused(line) == test::said{8070, {"1e+300", "1000000"}});
  line["cluster"] = {{"gpu", "h200"}, {"ranks_per_node", 2147483647}};
  CHECK(refused(line) == test::said{8034, {"ranks_per_node", "2147483647", "16384"}});
  line = line_of(8, 2'000'000'000);
  CHECK(said(line) == "a step has 16384000000000 tokens; they are counted up to 2147483647");
  line = line_of(8, 32);
  line["model"] = small_model;
  line["model"]["heads"] = 7;
  CHECK(said(line).starts_with("hidden=1024 does not divide into heads=7: take heads="));
  line = line_of(8, 32);
  line["strategy"] = "1d";
  CHECK(refused(line).id == 8042);
  CHECK(refused(line).arguments.at(0) == "strategy");
  line = line_of(8, 32);
  line["predict"] = {{"pp", 3}};
  CHECK(search(line)["diagnostics"][0]["id"] == "RC101");
  line["predict"] = {{"tp", 8}, {"microbatches", 5}};
  CHECK(search(line)["diagnostics"][0]["id"] == "RC221");
}

}  // namespace rankc::tool
