// SPDX-License-Identifier: Apache-2.0
#include "plans.hpp"

#include "../families/plan_list.hpp"

#include <rankc/schedules/dual_pipe_v.hpp>
#include <rankc/schedules/zero_bubble_v.hpp>

namespace documents {

namespace {

using namespace rankc;

constexpr training packed{.seq = 16, .global_batch = 12, .precision = f64, .end_of_document = 3};
constexpr training repeating = again(packed, {.full = true});
constexpr training attention_again = again(packed, {.attention = true});
constexpr training apart{
    .seq = 4, .global_batch = 48, .precision = f64};  // as many tokens; each document is a sequence
constexpr training unlimited{.seq = 16, .global_batch = 12, .precision = f64};

constexpr schedules::gpipe once{1};
constexpr schedules::one_f_one_b three{3};
constexpr schedules::zero_bubble_v v{3};
constexpr auto ring = cp_attention::ring;

}  // namespace

std::vector<split_plan> plans() {
  constexpr models::gpt2 gpt{.layers = 4, .hidden = 16, .heads = 4, .ffn = 24, .vocab = 8};
  constexpr models::llama llama{.layers = 4, .hidden = 16, .heads = 8, .kv_heads = 4, .ffn = 24, .vocab = 8};
  constexpr models::mixtral experts{.layers = 2,
                                    .hidden = 16,
                                    .heads = 4,
                                    .kv_heads = 4,
                                    .experts = 8,
                                    .top_k = 2,
                                    .expert_ffn = 6,
                                    .vocab = 8};
  plan_list l("documents", packed);
  l.add("gpt", "one", gpt, {}, once);
  l.add("gpt", "gathered", gpt, {.world = 2, .cp = 2}, once);
  l.add("gpt", "ring", gpt, {.world = 2, .cp = 2, .cp_attention = ring}, three);
  l.add("gpt", "ring_of_four", gpt, {.world = 4, .cp = 4, .cp_attention = ring}, once);
  l.add("gpt", "ulysses", gpt, {.world = 2, .cp = 2, .ulysses = 2}, three);
  l.add("gpt", "pairs", gpt, {.world = 4, .cp = 4, .ulysses = 2, .cp_attention = ring}, three);
  l.add("gpt", "sp", gpt, {.world = 4, .dp_replicate = 2, .tp = 2, .sequence_parallel = true}, three);
  l.add("gpt", "gathered_sp", gpt, {.world = 4, .cp = 2, .tp = 2, .sequence_parallel = true}, three);
  l.add("gpt", "ring_sp", gpt,
        {.world = 4, .cp = 2, .tp = 2, .sequence_parallel = true, .cp_attention = ring}, once);
  l.add("gpt", "pp", gpt, {.world = 4, .dp_shard = 2, .pp = 2}, three);
  l.add("gpt", "ulysses_zbv", gpt, {.world = 4, .cp = 2, .pp = 2, .ulysses = 2}, v);

  l.add("llama", "one", llama, {}, once);
  l.add("llama", "gathered_by_four", llama, {.world = 4, .cp = 4}, three);
  l.add("llama", "ring", llama, {.world = 2, .cp = 2, .cp_attention = ring}, once);
  l.add("llama", "ulysses", llama, {.world = 4, .cp = 4, .ulysses = 4}, once);
  l.add("llama", "pairs", llama, {.world = 4, .cp = 4, .ulysses = 2, .cp_attention = ring}, once);
  l.add("llama", "pairs_sp", llama,
        {.world = 8, .cp = 4, .tp = 2, .ulysses = 2, .sequence_parallel = true, .cp_attention = ring}, three);
  l.add("llama", "shards", llama, {.world = 4, .dp_shard = 2, .cp = 2, .reshard = reshard::after_step},
        three);
  l.add("llama", "again", llama, {.world = 2, .cp = 2, .cp_attention = ring}, three, attention_again);
  l.add("llama", "ring_zbv", llama, {.world = 4, .cp = 2, .pp = 2, .cp_attention = ring}, v, repeating);
  l.add("llama", "dual_pipe_v", llama, {.world = 4, .dp_replicate = 2, .pp = 2}, schedules::dual_pipe_v{6});

  l.add("experts", "one", experts, {}, once);
  l.add("experts", "ep", experts, {.world = 2, .dp_shard = 2, .ep = 2}, three);
  l.add("experts", "ep_ring", experts, {.world = 4, .dp_shard = 2, .cp = 2, .ep = 2, .cp_attention = ring},
        three);
  l.add("experts", "ep_ulysses_sp", experts,
        {.world = 8, .dp_shard = 2, .cp = 2, .tp = 2, .ep = 2, .ulysses = 2, .sequence_parallel = true},
        once);

  // References for the packed plans: documents of four tokens in a sequence each, and sequences that are one
  // document.
  l.add("apart", "one", gpt, {}, once, apart);
  l.add("apart", "two", gpt, {.world = 2, .dp_replicate = 2}, once, apart);
  l.add("unlimited", "one", gpt, {}, once, unlimited);
  l.add("unlimited", "two", gpt, {.world = 2, .cp = 2}, once, unlimited);
  return l.out;
}

}  // namespace documents
