// SPDX-License-Identifier: Apache-2.0
// The lines of five generated programs. Text that grows with layers, microbatches or ranks is seen here.
#include <doctest/doctest.h>

#include <rankc/codegen/gate.hpp>
#include <rankc/codegen/lowered.hpp>
#include <rankc/plan/make_plan.hpp>
#include <rankc/rankc.hpp>
#include <rankc/schedules/dual_pipe_v.hpp>

#include <algorithm>

#include "../../example_plans.hpp"
#include "emit/emit.hpp"

namespace page_lines_test {

using namespace rankc::codegen;

namespace {

constexpr rankc::training recipe{.seq = 8, .global_batch = 128, .precision = rankc::f32};

rankc::plan_data deep(const rankc::parallel_dims& dims, const auto& schedule) {
  constexpr rankc::models::gpt2 gpt{.layers = 32, .hidden = 16, .heads = 4, .ffn = 32, .vocab = 64};
  return rankc::make_plan("deep", gpt, dims, schedule, recipe, rankc::clusters::cpu);
}

rankc::plan_data with_experts() {
  constexpr rankc::models::mixtral mixtral{.layers = 8,
                                           .hidden = 32,
                                           .heads = 4,
                                           .kv_heads = 4,
                                           .experts = 4,
                                           .top_k = 2,
                                           .expert_ffn = 32,
                                           .vocab = 64};
  return rankc::make_plan(
      "experts", mixtral, {.world = 2, .dp_shard = 2, .ep = 2}, rankc::schedules::gpipe{4},
      rankc::training{.seq = 8, .global_batch = 8, .precision = rankc::f32}, rankc::clusters::cpu);
}

/// Llama 3 405B on 8,192 GPUs.
/// Source: Llama Team 2024, arXiv:2407.21783, tables 3 and 4.
rankc::plan_data largest() {
  constexpr rankc::models::llama llama{
      .layers = 126, .hidden = 16384, .heads = 128, .kv_heads = 8, .ffn = 53248, .vocab = 128256};
  rankc::cluster machines = rankc::clusters::h200<1024>;
  machines.memory = 0;
  return rankc::make_plan(
      "largest", llama, {.world = 8192, .dp_replicate = 64, .tp = 8, .pp = 16, .sequence_parallel = true},
      rankc::schedules::one_f_one_b{16},
      rankc::training{.seq = 8192, .global_batch = 1024, .precision = rankc::bf16}, machines);
}

/// The lines of C++ of a program, without its hashes.
long lines_of(const rankc::plan_data& plan, target to = target::host) {
  REQUIRE(plan.diagnostics.empty());
  const lowered l = lower(plan, to == target::host ? dtype::f32 : dtype::bf16, to);
  gated none;
  none.logits.resize(l.ranks.size());
  long lines = 0;
  for (const auto& [name, text] : emit(l, name_of(to), none))
    if (name.ends_with("pp")) lines += std::count(text.begin(), text.end(), '\n');
  return lines;
}

}  // namespace

TEST_CASE("pages stay as short as they are") {
  CHECK(lines_of(examples::plan("gpt_dp2_tp2_pp2")) <= 1495);
  CHECK(lines_of(deep({.world = 8, .dp_shard = 8}, rankc::schedules::gpipe{16})) <= 1725);
  CHECK(lines_of(deep({.world = 4, .pp = 4}, rankc::schedules::dual_pipe_v{16})) <= 6997);
  CHECK(lines_of(with_experts()) <= 1859);
  CHECK(lines_of(largest(), target::cuda) <= 12271);
}

TEST_CASE("a page of sharded weights does not grow with layers and microbatches") {
  const auto lines = [](int layers, int microbatches) {
    return lines_of(rankc::make_plan(
        "sharded", rankc::models::gpt2{.layers = layers, .hidden = 16, .heads = 4, .ffn = 32, .vocab = 64},
        {.world = 2, .dp_shard = 2}, rankc::schedules::gpipe{microbatches},
        rankc::training{.seq = 8, .global_batch = 2 * microbatches, .precision = rankc::f32},
        rankc::clusters::cpu));
  };
  // The ranges of the optimizer and the row of the schedule grow.
  CHECK(lines(48, 24) < lines(12, 6) + 60);
}

}  // namespace page_lines_test
