// SPDX-License-Identifier: Apache-2.0
// Searches and predictions at compile time equal those of a run. g++ needs about a minute, so a long test
// builds this file.
#include <doctest/doctest.h>

#include <rankc/best_plan.hpp>
#include "frameworks.hpp"
#include "megatron_memory.hpp"
#include <rankc/cost_model/step_time.hpp>
#include <rankc/plan/make_plan.hpp>
#include <rankc/models/gpt2.hpp>
#include <rankc/models/llama.hpp>
#include <rankc/rankc.hpp>

#include <algorithm>
#include <vector>

using namespace rankc;

namespace {
inline constexpr models::llama model{
    .layers = 8, .hidden = 4096, .heads = 32, .kv_heads = 8, .ffn = 14336, .vocab = 128256};
inline constexpr training recipe{.seq = 8192, .global_batch = 4, .precision = bf16};
inline constexpr cluster two_gpus{1, 2, 141'000'000'000, 989e12, 450e9, 50e9, "h200"};
inline constexpr auto best = best_plan<model, two_gpus, recipe>();
static_assert(valid<best>);
static_assert(fits<best>);
}  // namespace

TEST_CASE("a compiler finds the plan that a run finds") {
  const plan_search::question q{two_gpus, &cost_model::h200, recipe, 2};
  const plan_search::ranking all = plan_search::rank_plans(model, q);
  REQUIRE(all.top.size() == 1);
  const plan_search::judged* const found = &all.top.front();
  CHECK(found->choice.schedule == best.schedule);
  CHECK(found->choice.recompute == best.recipe.recompute);
  for (const named_degree& a : all_degrees) CHECK(found->choice.dims.*a.degree == best.dims.*a.degree);
  constexpr double seconds = step_time<best>;
  CHECK(seconds == found->time.step);
  constexpr std::size_t bytes = peak_bytes<best>;
  CHECK(bytes == found->bytes);
}

namespace {

/// The memory of the rank that needs most.
constexpr double memory_of(const plan_data& p) {
  const std::vector<double> ranks = cost_model::megatron_memory(
      p, lowering::lower_layers(p, lowering::setting_of(p, bf16, lowering::target::cuda)));
  return *std::max_element(ranks.begin(), ranks.end());
}

constexpr plan on_two_nodes{
    .model = models::gpt2{.layers = 4, .hidden = 1024, .heads = 16, .ffn = 4096, .vocab = 51200},
    .dims = {.world = 16, .tp = 8, .pp = 2},
    .schedule = schedules::one_f_one_b{4},
    .recipe = {.seq = 1024, .global_batch = 8, .recompute = {.full = true}},
    .cluster = clusters::a100<2>};
constexpr double compiled(const cost_model::framework& f) {
  return cost_model::predict_step(make_plan_data(on_two_nodes), cost_model::a100, f).step;
}

constexpr double compiled_memory() { return memory_of(make_plan_data(on_two_nodes)); }

}  // namespace

TEST_CASE("a compiler predicts programs of others as a run does, to the last bit") {
  constexpr double of_2021 = compiled(cost_model::megatron_2021),
                   of_2022 = compiled(cost_model::megatron_2022);
  constexpr double in_8_bits = compiled(cost_model::nemo_2025_fp8), own = compiled(cost_model::rankc_itself);
  const plan_data p = make_plan("on two nodes", on_two_nodes);
  REQUIRE(accepts(p.diagnostics));
  CHECK(of_2021 == cost_model::predict_step(p, cost_model::a100, cost_model::megatron_2021).step);
  CHECK(of_2022 == cost_model::predict_step(p, cost_model::a100, cost_model::megatron_2022).step);
  CHECK(in_8_bits == cost_model::predict_step(p, cost_model::a100, cost_model::nemo_2025_fp8).step);
  CHECK(own == cost_model::predict_step(p, cost_model::a100).step);
  constexpr double bytes = compiled_memory();
  CHECK(bytes == memory_of(p));
  // The 2021 version exposes its tp reductions and adds gradients in separate kernels.
  CHECK(of_2021 > of_2022);
  CHECK(of_2022 > own);  // attention scores in memory, dropout, and unfused kernels
}
