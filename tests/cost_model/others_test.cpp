// SPDX-License-Identifier: Apache-2.0
// Predicted steps and memory of other frameworks, against published ones.
#include <doctest/doctest.h>

#include "megatron_memory.hpp"
#include <rankc/cost_model/step_time.hpp>
#include <rankc/plan/make_plan.hpp>
#include <rankc/rankc.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "published_rows.hpp"

using namespace rankc;

namespace {

struct distance {
  double sum = 0, most = 0;
  int rows = 0;
  void add(double off) {
    sum += std::abs(off);
    most = std::max(most, std::abs(off));
    ++rows;
  }
  double mean() const { return rows ? sum / rows : 0; }
};
struct set_distance {
  distance fitted, others;
};

/// The memory of the rank that needs most.
constexpr double memory_of(const plan_data& p) {
  const std::vector<double> ranks = cost_model::megatron_memory(
      p, lowering::lower_layers(p, lowering::setting_of(p, bf16, lowering::target::cuda)));
  return *std::max_element(ranks.begin(), ranks.end());
}

double predicted(const published::row& r) { return cost_model::predict_step(r.plan, r.gpu, *r.by).step; }

std::map<std::string, set_distance> compare(const std::vector<published::row>& rows) {
  std::map<std::string, set_distance> sets;
  for (const published::row& r : rows) {
    INFO(r.set << " " << r.id);
    REQUIRE(accepts(r.plan.diagnostics));
    const double seconds = predicted(r), off = seconds / r.seconds - 1;
    std::printf("%-15s %-46s %8.3f s, predicted %8.3f: %+5.1f %%%s\n", r.set.c_str(), r.id.c_str(), r.seconds,
                seconds, 100 * off, r.fitted ? ", fitted" : "");
    (r.fitted ? sets[r.set].fitted : sets[r.set].others).add(off);
  }
  for (const auto& [name, s] : sets)
    for (const auto& [which, d] : {std::pair{"fitted", s.fitted}, {"others", s.others}})
      std::printf("%-15s %s: %2d rows, off by %4.1f %% on average and %4.1f %% at most\n", name.c_str(),
                  which, d.rows, 100 * d.mean(), 100 * d.most);
  return sets;
}

}  // namespace

TEST_CASE("published steps that no constant is by are predicted") {
  const std::map<std::string, std::pair<int, double>> at_most{
      {"korthikanti", {6, 0.03}},     {"narayanan", {7, 0.05}},       {"megatron readme", {1, 0.08}},
      {"vtrain", {57, 0.07}},         {"dgxc bf16 h100", {17, 0.06}}, {"dgxc bf16 gb200", {5, 0.06}},
      {"dgxc fp8 h100", {12, 0.05}},  {"dgxc fp8 gb200", {4, 0.1}},   {"mlperf 405b fp8", {10, 0.08}},
      {"mlperf gpt3 fp8", {3, 0.17}}, {"simumax", {16, 0.05}}};
  const auto sets = compare(published::read(RANKC_COST_MODEL "/published.jsonl"));
  CHECK(sets.size() == at_most.size());
  for (const auto& expected : at_most) {
    INFO(expected.first);
    REQUIRE(sets.count(expected.first) == 1);
    CHECK(sets.at(expected.first).others.rows == expected.second.first);
    CHECK(sets.at(expected.first).others.mean() <= expected.second.second);
  }
}

TEST_CASE("published memory is predicted, by no constant that is fitted") {
  constexpr double gib = 1 << 30;
  distance all;
  for (const published::row& r : published::read(RANKC_COST_MODEL "/published.jsonl")) {
    if (r.gib == 0) continue;
    const double predicted = memory_of(r.plan) / gib, off = predicted / r.gib - 1;
    std::printf("%-15s %-46s %7.2f GiB, predicted %7.2f: %+4.1f %%\n", r.set.c_str(), r.id.c_str(), r.gib,
                predicted, 100 * off);
    CHECK_MESSAGE(std::abs(off) < 0.03, r.id);
    all.add(off);
  }
  CHECK(all.rows == 22);
  CHECK(all.mean() < 0.01);
}

TEST_CASE("no GPU is faster than its datasheet says") {
  for (const cost_model::gpu_speed* g : cost_model::known) {
    INFO(g->name);
    CHECK(g->products <= g->peak);
    for (const cost_model::attention_speed& s :
         {g->forward[0], g->forward[1], g->backward[0], g->backward[1]})
      CHECK(s.per_second <= g->peak);
    CHECK(g->stores_beside <= 1);
  }
  const cost_model::gpu_speed &a100 = cost_model::a100, &b200 = cost_model::b200, &gb200 = cost_model::gb200;
  for (const cost_model::rate& r : {a100.passes, a100.column_sums, a100.sweeps})
    CHECK(r.per_second <= 2.039e12);
  for (const cost_model::gpu_speed* g : {&b200, &gb200})
    for (const cost_model::rate& r : {g->passes, g->column_sums, g->sweeps}) CHECK(r.per_second <= 8e12);
  CHECK((a100.node.bandwidth <= 300e9 && a100.network.bandwidth <= 25e9));
  CHECK((b200.node.bandwidth <= 900e9 && b200.network.bandwidth <= 50e9));
  CHECK(cost_model::nemo_2025.waits_for_tensor <= 1);
  CHECK(cost_model::nemo_2025_fp8.products.speed <= 2);
}
