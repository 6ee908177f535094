// SPDX-License-Identifier: Apache-2.0
// `rankc search` with the field names of transformer-perf-estimates, against its recorded searches; refusals;
// the table.
#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "answers.hpp"
#include "search.hpp"

namespace rankc::tool {

namespace search_test {

namespace {

json search(const std::string& line) { return json::parse(answer_line(line, answer_search)); }

std::vector<std::string> columns(const std::string& line) {
  std::vector<std::string> out;
  std::stringstream text(line);
  for (std::string column; std::getline(text, column, ',');) out.push_back(column);
  return out;
}

/// Whether each number of the row equals the answer's field of this name, if the answer has it.
int compare(const json& ours, const std::vector<std::string>& names, const std::vector<std::string>& row) {
  int compared = 0;
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (!ours.contains(names[i])) continue;
    CAPTURE(names[i]);
    const double a = ours[names[i]].get<double>(), b = std::stod(row[i]);
    CHECK(std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b)));
    ++compared;
  }
  return compared;
}

json line_of(const std::vector<std::string>& row) {
  json line{{"model", row[1]},
            {"strategy", row[2]},
            {"system", row[3]},
            {"nvs", std::stoi(row[4])},
            {"n_gpus", std::stoi(row[5])},
            {"global_batch_size", std::stoi(row[6])},
            {"capacity_gb", std::stod(row[7])}};
  if (row[1] == "x_gpt1p3b")
    line["model"] = {{"l", 2048}, {"e", 2048}, {"f", 8192}, {"h", 16}, {"depth", 24}};
  if (row[1] == "x_dense70b_8k")
    line["model"] = {{"l", 8192}, {"e", 8192}, {"f", 32768}, {"h", 64}, {"depth", 80}};
  return line;
}

std::string page(const json& line) {
  std::ostringstream out, errors;
  const int code = show_search(line, out, errors);
  return code == 0 ? out.str() : errors.str();
}

const std::string small =
    R"({"model":"gpt3","strategy":"1d","system":"H200","nvs":8,"n_gpus":64,"global_batch_size":2048})";

}  // namespace

TEST_CASE("answers are the recorded ones") {
  std::ifstream file(RANKC_SOURCES "/tests/oracles/planner/searches.csv");
  std::string text;
  REQUIRE(std::getline(file, text));
  const std::vector<std::string> of_search = columns(text);
  REQUIRE(std::getline(file, text));
  const std::vector<std::string> of_plan = columns(text);
  json ours;
  std::size_t plan = 0;
  int searches = 0, plans = 0;
  while (std::getline(file, text)) {
    CAPTURE(text);
    const std::vector<std::string> row = columns(text);
    if (row[0] == "search") {
      ours = search(line_of(row).dump());
      REQUIRE(ours["ok"] == true);
      CHECK(compare(ours, of_search, row) == 6);
      plan = 0;
      ++searches;
    } else {
      REQUIRE(plan < ours["top"].size());
      CHECK(compare(ours["top"][plan], {"", "", "t", "throughput"}, {"", "", row[12], row.back()}) == 2);
      // Plans of equal time may be in another order, or replace one another.
      json best = ours["top"][plan];
      const bool same = best["dp"] == std::stoi(row[2]) && best["pp"] == std::stoi(row[5]) &&
                        best["mbs"] == std::stoi(row[6]) && best["nv_dp"] == std::stoi(row[10]) &&
                        best["nv_pp"] == std::stoi(row[11]);
      if (same) compare(best, of_plan, row);
      plans += same;
      ++plan;
    }
  }
  CHECK(searches == 455);
  CHECK(plans > 1900);
}

TEST_CASE("a line has the fields of its strategy, and as many plans as it asks for") {
  json line = json::parse(small);
  line["top"] = 3;
  const auto first = [&](const char* strategy) {
    line["strategy"] = strategy;
    const json answered = search(line.dump());
    CHECK(answered["top"].size() == 3);
    return answered["top"][0];
  };
  const json in_1d = first("1d"), in_2d = first("2d"), in_seqp = first("seqp");
  CHECK((in_1d.contains("nv_tp") && !in_1d.contains("tp1") && !in_1d.contains("nb")));
  CHECK((in_2d.contains("nv_tp2") && in_2d.contains("nb")));
  CHECK((in_seqp.contains("nv_tp2") && !in_seqp.contains("nb")));
  CHECK(in_2d["tp"] == in_2d["tp1"].get<int>() * in_2d["tp2"].get<int>());
  line["corrected"] = true;
  CHECK(first("2d")["t"] != in_2d["t"]);
}

TEST_CASE("what is wrong with a line is said in one sentence each") {
  const auto with = [](const char* name, const json& value) {
    json line = json::parse(small);
    line[name] = value;
    return said_of(search(line.dump()));
  };
  using test::said;
  CHECK(with("model", "gpt4") == said{8041, {"model", "\"gpt4\"", "gpt3, gpt3_1T, vit_era5"}});
  CHECK(with("strategy", "3d") == said{8041, {"strategy", "\"3d\"", "1d, 2d, seqp"}});
  CHECK(with("system", "H100") == said{8041, {"system", "\"H100\"", "A100, H200, B200, B200-next"}});
  CHECK(with("cost_model", "own") == said{8041, {"cost_model", "\"own\"", "transformer_perf, rankc"}});
  CHECK(with("n_gpus", 0) == said{8033, {"n_gpus", "0"}});
  CHECK(with("nvs", 5000) == said{8034, {"nvs", "5000", "4096"}});
  CHECK(with("model", {{"l", 2048}, {"e", 8}, {"h", 16}, {"depth", 2}}) == said{8100, {"16", "8"}});
  CHECK(with("model", {{"l", 2048}, {"e", 8}, {"h", 4}}) == said{8030, {"depth"}});
  CHECK(with("gpus", 8) == said{8042, {"gpus", "n_gpus"}});
  CHECK(sentences(search("{}")) == "RC8030 RC8030 RC8030 RC8030 RC8030");
}

TEST_CASE("the table has the best plans, and the best of the corrected model where it is another") {
  const json line = json::parse(
      R"({"model":"gpt3_1T","strategy":"1d","system":"B200","nvs":8,"n_gpus":1024,"global_batch_size":4096,"top":2})");
  CHECK(page(line) ==
        "gpt3_1T, 1d, 1024 GPUs B200 in domains of 8, 4096 sequences: 2554 plans, 326 in 192 GB\n"
        "   seconds       GB     dp      tp     pp    mbs   nb   domain tp dp pp   compute  memory    tp    "
        "dp    pp  bubble\n"
        "   30.1294    175.2      4       2    128      1                  2 2 2    85.4%    0.7%  2.3%  "
        "0.3%  0.3%  11.0%\n"
        "   30.1405    191.0      8       2     64      1                  2 2 2    85.4%    0.7%  2.3%  "
        "0.6%  0.1%  10.9%\n"
        "\nbest with the model's known defects corrected:\n"
        "   30.7796    162.0     16       4     16      1                  4 2 1    85.4%    0.4%  7.0%  "
        "1.1%  0.6%   5.5%\n");
  json same = json::parse(small);
  same["strategy"] = "seqp";
  same["n_gpus"] = 512;
  CHECK(page(same).find("corrected") == std::string::npos);
  same["capacity_gb"] = 1;
  CHECK(page(same) == "gpt3, seqp, 512 GPUs H200 in domains of 8, 2048 sequences: 12388 plans, 0 in 1 GB\n");
  const std::string refused =
      page(json::parse(R"({"model":"gpt3","strategy":"1d","system":"H200","n_gpus":8})"));
  CHECK(refused.starts_with("error[RC300]: RC8030: "));
  CHECK(test::said_in(refused) == test::said{8030, {"global_batch_size"}});
}

}  // namespace search_test

}  // namespace rankc::tool
