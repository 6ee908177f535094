// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/metrics_file.hpp>

#include "../../said.hpp"
#include "scratch.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

using namespace rankc::runtime;

namespace {
constexpr step_metrics example{.step = 7,
                               .loss = 0.1,
                               .grad_norm = 1.5,
                               .lr = 3e-4,
                               .tokens = 1u << 20,
                               .step_ms = 12.5,
                               .tokens_per_s = 1e6,
                               .mfu = {},
                               .peak_bytes = 4096};
}

TEST_CASE("a line has exactly these keys in this order, and its numbers survive") {
  CHECK(json_line(example) ==
        R"({"step":7,"loss":0.1,"grad_norm":1.5,"lr":0.0003,"tokens":1048576,"step_ms":12.5,)"
        R"("tokens_per_s":1000000.0,"mfu":null,"peak_bytes":4096})");
  step_metrics m = example;
  m.loss = 0x1.23456789abcdep+2;
  m.mfu = 0.5;
  const auto line = nlohmann::json::parse(json_line(m));
  CHECK(line["loss"].get<double>() == m.loss);
  CHECK(line["mfu"] == 0.5);
  CHECK_FALSE(line.contains("expert_load"));
  CHECK_FALSE(line.contains("skipped"));
  m.routers = router_metrics{{1.25, 3}, 2.5};
  CHECK(json_line(m).ends_with(R"("peak_bytes":4096,"balance_loss":2.5,"expert_load":[1.25,3.0]})"));
  m.routers->dropped = {0, 7};
  CHECK(json_line(m).ends_with(R"("expert_load":[1.25,3.0],"dropped":[0,7]})"));
}

TEST_CASE("a step in which no label counts has neither a loss nor a norm") {
  step_metrics m = example;
  m.is_skipped = true;
  CHECK(json_line(m).starts_with(R"({"step":7,"loss":null,"grad_norm":null,"lr":0.0003,)"));
  CHECK(nlohmann::json::parse(json_line(m))["skipped"] == true);
  CHECK(console_line(m, 100).starts_with("step   7/100  loss         -  grad norm        -  lr 3.000e-04"));
  CHECK(console_line(m, 100).size() == console_line(example, 100).size());
}

TEST_CASE("console lines are aligned") {
  step_metrics later = example;
  later.step = 100;
  later.loss = 11.25;
  CHECK(console_line(example, 100) ==
        "step   7/100  loss  0.100000  grad norm   1.5000  lr 3.000e-04      12.50 ms    "
        "1000000 tokens/s");
  CHECK(console_line(example, 100).size() == console_line(later, 100).size());
  later.mfu = 0.415;
  CHECK(console_line(later, 100).ends_with("tokens/s  mfu  41.5 %"));
}

TEST_CASE("a short run shows every step, a long one about twenty with first and last") {
  for (int step = 1; step <= 20; ++step) CHECK(is_shown(step, 1, 20));
  int shown = 0;
  for (int step = 101; step <= 1100; ++step) shown += is_shown(step, 101, 1100);
  CHECK(shown >= 19);
  CHECK(shown <= 22);
  CHECK(is_shown(101, 101, 1100));
  CHECK(is_shown(1100, 101, 1100));
}

TEST_CASE("a file is begun or continued after a step") {
  const scratch files;
  const std::string file = files.path("m.jsonl"), line = json_line(example) + "\n";
  metrics_file(file, std::nullopt).write(example);
  metrics_file(file, 7).write(example);
  CHECK(contents(file) == line + line);
  metrics_file(file, 6).write(example);
  CHECK(contents(file) == line);
  files.write("m.jsonl", line + "a line of someone's\n" + line + line.substr(0, 9));
  metrics_file(file, 7).write(example);
  CHECK(contents(file) == line + "a line of someone's\n" + line + line);
  metrics_file(file, std::nullopt).write(example);
  CHECK(contents(file) == line);
  const std::string nowhere = files.path("no/such/m.jsonl");
  const std::string refused = refusal_of([&] { metrics_file(nowhere, std::nullopt); });
  CHECK(refused.starts_with("1: RC"));
  CHECK(rankc::test::said_in(refused) == rankc::test::said{5005, {nowhere, "No such file or directory"}});
}
