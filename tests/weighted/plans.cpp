// SPDX-License-Identifier: Apache-2.0
#include "plans.hpp"

#include "../families/plan_list.hpp"

#include <rankc/schedules/dual_pipe_v.hpp>
#include <rankc/schedules/zero_bubble_1p.hpp>
#include <rankc/schedules/zero_bubble_v.hpp>

#include "../masked/models.hpp"

namespace weighted {

namespace {

using namespace rankc;

constexpr training every{.seq = 8, .global_batch = 12, .precision = f64, .token_weights = true};
/// The recipe of the oracle: documents, ignored labels and weights.
constexpr training oracle{.seq = 16,
                          .global_batch = 8,
                          .precision = f64,
                          .end_of_document = 3,
                          .ignored_label = -100,
                          .ignore_across_documents = true,
                          .token_weights = true};
constexpr models::llama of_oracle{
    .layers = 2, .hidden = 8, .heads = 4, .kv_heads = 2, .ffn = 12, .vocab = 16, .theta = 10000};
constexpr schedules::gpipe once{1}, four{4};
constexpr schedules::one_f_one_b two{2}, three{3};
constexpr auto ring = cp_attention::ring;

void add_oracle(plan_list& l) {
  const auto add = [&](const char* layout, const parallel_dims& dims, const auto& schedule) {
    l.add("llama", layout, of_oracle, dims, schedule, oracle);
  };
  add("one", {}, once);
  add("four", {}, four);
  add("dp2", {.world = 2, .dp_replicate = 2}, two);
  add("shard2", {.world = 2, .dp_shard = 2}, once);
  add("hybrid", {.world = 4, .dp_replicate = 2, .dp_shard = 2}, once);
  add("tp2", {.world = 2, .tp = 2}, two);
  add("sp", {.world = 2, .tp = 2, .sequence_parallel = true}, four);
  add("gathered", {.world = 2, .cp = 2}, two);
  add("ring", {.world = 4, .cp = 4, .cp_attention = ring}, once);
  add("ulysses", {.world = 2, .cp = 2, .ulysses = 2}, four);
  add("pairs", {.world = 4, .cp = 4, .ulysses = 2, .cp_attention = ring}, once);
  add("pp2", {.world = 2, .pp = 2}, four);
  add("zb1p", {.world = 2, .pp = 2}, schedules::zero_bubble_1p{4});
  add("dp2_tp2", {.world = 4, .dp_replicate = 2, .tp = 2}, two);
  l.add("llama", "eight", of_oracle, {.world = 8, .dp_shard = 2, .cp = 2, .pp = 2}, two,
        again(oracle, {.full = true}));
}

/// Plans in which no label is ignored, with losses of routers, and with two losses of the labels.
void add_others(plan_list& l) {
  l.add("every", "one", masked::four_layers, {}, once);
  l.add("every", "tp2_pp2", masked::four_layers, {.world = 4, .tp = 2, .pp = 2, .sequence_parallel = true},
        three);
  l.add("every", "zbv", masked::four_layers, {.world = 4, .dp_shard = 2, .pp = 2},
        schedules::zero_bubble_v{3});
  l.add("experts", "one", masked::experts, {}, three);
  l.add("experts", "ep2", masked::experts, {.world = 2, .dp_shard = 2, .ep = 2}, three);
  l.add("two_losses", "one", masked::two_heads{}, {}, schedules::gpipe{6});
  l.add("two_losses", "dual_pipe_v", masked::two_heads{}, {.world = 4, .dp_replicate = 2, .pp = 2},
        schedules::dual_pipe_v{6});
}

}  // namespace

std::vector<split_plan> more_layouts() {
  plan_list l("weighted", oracle);
  const auto add = [&](const char* layout, const parallel_dims& dims, const auto& schedule) {
    l.add("llama", layout, of_oracle, dims, schedule);
  };
  add("dp4", {.world = 4, .dp_replicate = 4}, two);
  add("dp8", {.world = 8, .dp_replicate = 8}, once);
  add("shard4", {.world = 4, .dp_shard = 4, .reshard = reshard::after_step}, two);
  add("hybrid8", {.world = 8, .dp_replicate = 4, .dp_shard = 2}, once);
  add("gathered4", {.world = 4, .cp = 4}, four);
  add("ring2", {.world = 2, .cp = 2, .cp_attention = ring}, two);
  add("dp2_ring", {.world = 4, .dp_replicate = 2, .cp = 2, .cp_attention = ring}, two);
  add("shard2_cp2", {.world = 4, .dp_shard = 2, .cp = 2}, once);
  add("shard2_ulysses", {.world = 4, .dp_shard = 2, .cp = 2, .ulysses = 2}, two);
  add("tp2_cp2", {.world = 4, .cp = 2, .tp = 2}, two);
  add("sp_ring", {.world = 4, .cp = 2, .tp = 2, .sequence_parallel = true, .cp_attention = ring}, once);
  add("shard2_sp", {.world = 4, .dp_shard = 2, .tp = 2, .sequence_parallel = true}, two);
  add("dp2_pp2", {.world = 4, .dp_replicate = 2, .pp = 2}, two);
  add("shard2_pp2", {.world = 4, .dp_shard = 2, .pp = 2, .reshard = reshard::after_stage}, four);
  add("cp2_pp2", {.world = 4, .cp = 2, .pp = 2}, four);
  add("sp_pp2", {.world = 4, .tp = 2, .pp = 2, .sequence_parallel = true}, two);
  add("dp2_zb1p", {.world = 4, .dp_replicate = 2, .pp = 2}, schedules::zero_bubble_1p{4});
  add("gpipe_pp2", {.world = 2, .pp = 2}, four);
  add("pairs_dp2", {.world = 8, .dp_replicate = 2, .cp = 4, .ulysses = 2, .cp_attention = ring}, once);
  return l.out;
}

std::vector<split_plan> plans() {
  plan_list l("weighted", every);
  add_oracle(l);
  add_others(l);
  return l.out;
}

}  // namespace weighted
