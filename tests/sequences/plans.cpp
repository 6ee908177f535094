// SPDX-License-Identifier: Apache-2.0
#include "plans.hpp"

#include "../families/plan_list.hpp"

#include <rankc/schedules/dual_pipe_v.hpp>
#include <rankc/schedules/interleaved_one_f_one_b.hpp>
#include <rankc/schedules/zero_bubble_v.hpp>

#include "06_gated_attention.hpp"
#include "07_latent_attention.hpp"

namespace sequences {

namespace {

using namespace rankc;

class list : public plan_list {
 public:
  list() : plan_list("sequences", {}) {}
  void add(const std::string& job, const std::string& layout, const auto& model, const parallel_dims& dims,
           const auto& schedule, const recomputation& again = {}) {
    const training recipe{.seq = seq, .global_batch = 12, .precision = f64, .recompute = again};
    plan_list::add(job, layout, model, dims, schedule, recipe);
  }
  int seq = 16;
};

constexpr schedules::gpipe once{1};
constexpr schedules::one_f_one_b three{3};
constexpr schedules::interleaved_one_f_one_b loop{2, 2};
constexpr schedules::zero_bubble_v v{3};
constexpr schedules::dual_pipe_v both_ways{6};
constexpr recomputation all{.full = true}, kinds{.attention = true, .activations = true, .norms = true};

/// Ulysses groups of two and four ranks in rings of two, three and four groups, with every other technique.
void add_rings_of_groups(list& l, const auto& gpt, const auto& llama, const auto& latent) {
  constexpr auto ring = cp_attention::ring;
  constexpr parallel_dims pairs{.world = 4, .cp = 4, .ulysses = 2, .cp_attention = ring};
  constexpr parallel_dims pp{.world = 8, .cp = 4, .pp = 2, .ulysses = 2, .cp_attention = ring};
  l.add("gpt", "pairs", gpt, pairs, once);
  l.add("llama", "pairs", llama, pairs, three);
  l.add("latent", "pairs", latent, pairs, once);
  l.add("llama", "four_pairs", llama, {.world = 8, .cp = 8, .ulysses = 2, .cp_attention = ring}, once);
  l.add("llama", "two_fours", llama, {.world = 8, .cp = 8, .ulysses = 4, .cp_attention = ring}, three);
  l.add("gpt", "two_fours", gpt,
        {.world = 8, .cp = 8, .ulysses = 4, .cp_weights = cp_weights::replicate, .cp_attention = ring}, once);
  l.add("gpt", "pairs_replicas", gpt,
        {.world = 8,
         .dp_replicate = 2,
         .cp = 4,
         .ulysses = 2,
         .cp_weights = cp_weights::replicate,
         .cp_attention = ring},
        three);
  l.add("llama", "pairs_shards", llama,
        {.world = 8, .dp_shard = 2, .cp = 4, .ulysses = 2, .cp_attention = ring}, three);
  l.add("llama", "pairs_sp", llama,
        {.world = 8, .cp = 4, .tp = 2, .ulysses = 2, .sequence_parallel = true, .cp_attention = ring}, three,
        kinds);
  l.add("gpt", "pairs_tp", gpt, {.world = 8, .cp = 4, .tp = 2, .ulysses = 2, .cp_attention = ring}, once);
  l.add("llama", "pairs_again", llama, pairs, three, all);
  l.add("gpt", "pairs_again_attention", gpt, pairs, once, {.attention = true});
  l.add("gpt", "pairs_pp", gpt, pp, three);
  l.add("llama", "pairs_zbv", llama, pp, v, all);
  l.add("llama", "pairs_dual_pipe_v", llama, pp, both_ways);
  l.seq = 24;  // divides into twelve chunks
  l.add("thirds", "pairs", llama, {.world = 6, .cp = 6, .ulysses = 2, .cp_attention = ring}, three);
}

/// Rings of two, three and four ranks, with every other technique.
void add_rings(list& l, const auto& gpt, const auto& llama, const auto& gated, const auto& latent) {
  constexpr auto ring = cp_attention::ring;
  constexpr parallel_dims two{.world = 2, .cp = 2, .cp_attention = ring};
  constexpr parallel_dims pp{.world = 4, .cp = 2, .pp = 2, .cp_attention = ring};
  l.add("gpt", "ring", gpt, two, once);
  l.add("llama", "ring", llama, two, three);
  l.add("gated", "ring", gated, two, once);
  l.add("latent", "ring", latent, two, once);
  l.add("llama", "ring_of_four", llama, {.world = 4, .cp = 4, .cp_attention = ring}, three);
  l.add("gpt", "ring_of_four", gpt,
        {.world = 4, .cp = 4, .cp_weights = cp_weights::replicate, .cp_attention = ring}, once);
  l.add("gpt", "ring_replicas", gpt,
        {.world = 4, .dp_replicate = 2, .cp = 2, .cp_weights = cp_weights::replicate, .cp_attention = ring},
        three);
  l.add("llama", "ring_shards", llama, {.world = 4, .dp_shard = 2, .cp = 2, .cp_attention = ring}, three);
  l.add("llama", "ring_sp", llama,
        {.world = 4, .cp = 2, .tp = 2, .sequence_parallel = true, .cp_attention = ring}, three, kinds);
  l.add("gpt", "ring_tp", gpt, {.world = 4, .cp = 2, .tp = 2, .cp_attention = ring}, once);
  l.add("llama", "ring_again", llama, two, three, all);
  l.add("gpt", "ring_again_attention", gpt, {.world = 4, .cp = 4, .cp_attention = ring}, once,
        {.attention = true});
  l.add("gpt", "ring_pp", gpt, pp, three);
  l.add("llama", "ring_zbv", llama, pp, v, all);
  l.add("gpt", "ring_zbv", gpt, pp, v);
  l.add("llama", "ring_dual_pipe_v", llama, pp, both_ways);
  l.seq = 24;  // divides into six chunks
  l.add("thirds", "one", llama, {}, once);
  l.add("thirds", "ring", llama, {.world = 3, .cp = 3, .cp_attention = ring}, three);
  l.add("thirds", "ring_kept", llama,
        {.world = 6, .dp_shard = 2, .cp = 3, .cp_weights = cp_weights::replicate, .cp_attention = ring},
        three, kinds);
}

}  // namespace

std::vector<split_plan> plans() {
  constexpr models::gpt2 gpt{.layers = 4, .hidden = 16, .heads = 4, .ffn = 24, .vocab = 32};
  constexpr models::llama llama{.layers = 4, .hidden = 16, .heads = 8, .kv_heads = 4, .ffn = 24, .vocab = 32};
  constexpr plans::gated_llama gated{.layers = 2, .hidden = 16, .heads = 4, .ffn = 10, .vocab = 32};
  constexpr plans::latent_gpt latent{.layers = 2,
                                     .hidden = 16,
                                     .heads = 4,
                                     .plain = 3,
                                     .turned = 4,
                                     .of_q = 5,
                                     .of_kv = 4,
                                     .ffn = 10,
                                     .vocab = 32};
  list l;
  const auto alone = [&](const char* job, const auto& model) {
    l.add(job, "one", model, {}, once);
    l.add(job, "two", model, {.world = 2, .cp = 2, .ulysses = 2}, once);
    l.add(job, "two_by_three", model,
          {.world = 2, .cp = 2, .ulysses = 2, .cp_weights = cp_weights::replicate}, three);
    l.add(job, "four", model, {.world = 4, .cp = 4, .ulysses = 4}, once);
  };
  alone("gpt", gpt);
  alone("llama", llama);
  alone("gated", gated);
  alone("latent", latent);

  l.add("gpt", "replicas", gpt,
        {.world = 4, .dp_replicate = 2, .cp = 2, .ulysses = 2, .cp_weights = cp_weights::replicate}, three);
  l.add("llama", "shards", llama, {.world = 4, .dp_shard = 2, .cp = 2, .ulysses = 2}, three);
  l.add("gpt", "shards_kept", gpt,
        {.world = 4, .dp_shard = 2, .cp = 2, .ulysses = 2, .reshard = reshard::after_step}, three);
  l.add("llama", "hsdp", llama,
        {.world = 8,
         .dp_replicate = 2,
         .dp_shard = 2,
         .cp = 2,
         .ulysses = 2,
         .cp_weights = cp_weights::replicate,
         .prefetch = 2},
        once);
  l.add("gpt", "tp", gpt, {.world = 4, .cp = 2, .tp = 2, .ulysses = 2, .cp_weights = cp_weights::replicate},
        three);
  l.add("llama", "tp", llama,
        {.world = 4, .cp = 2, .tp = 2, .ulysses = 2, .cp_weights = cp_weights::replicate}, once);
  l.add("gpt", "sp", gpt, {.world = 4, .cp = 2, .tp = 2, .ulysses = 2, .sequence_parallel = true}, three);
  l.add("llama", "sp", llama,
        {.world = 4,
         .cp = 2,
         .tp = 2,
         .ulysses = 2,
         .sequence_parallel = true,
         .cp_weights = cp_weights::replicate},
        once, kinds);
  l.add("gpt", "again", gpt, {.world = 2, .cp = 2, .ulysses = 2}, three, all);
  l.add("llama", "again", llama, {.world = 2, .cp = 2, .ulysses = 2}, three, all);
  l.add("llama", "again_attention", llama, {.world = 2, .cp = 2, .ulysses = 2}, once, {.attention = true});

  constexpr parallel_dims pp{.world = 4, .cp = 2, .pp = 2, .ulysses = 2};
  l.add("gpt", "pp", gpt, pp, three);
  l.add("llama", "pp", llama, pp, three, kinds);
  l.add("llama", "loop", llama, pp, loop);
  l.add("gpt", "zbv", gpt, pp, v);
  l.add("llama", "zbv", llama, pp, v, all);
  l.add("gpt", "dual_pipe_v", gpt, pp, both_ways);
  l.add("llama", "dual_pipe_v", llama, pp, both_ways);
  l.add("llama", "pp_sp", llama,
        {.world = 8, .cp = 2, .tp = 2, .pp = 2, .ulysses = 2, .sequence_parallel = true}, three, all);
  l.add("gpt", "zbv_shards", gpt,
        {.world = 8, .dp_shard = 2, .cp = 2, .pp = 2, .ulysses = 2, .reshard = reshard::after_stage}, v,
        kinds);
  l.add("llama", "dual_pipe_v_tp", llama,
        {.world = 8,
         .cp = 2,
         .tp = 2,
         .pp = 2,
         .ulysses = 2,
         .sequence_parallel = true,
         .cp_weights = cp_weights::replicate},
        both_ways);
  add_rings(l, gpt, llama, gated, latent);
  l.seq = 16;
  add_rings_of_groups(l, gpt, llama, latent);
  return l.out;
}

plan_data ring_of(int groups, int of_group) {
  const int ranks = groups * of_group;
  const models::llama model{.layers = 1, .hidden = 16, .heads = 8, .kv_heads = 4, .ffn = 24, .vocab = 32};
  const parallel_dims dims{.world = ranks,
                           .cp = ranks,
                           .ulysses = of_group,
                           .cp_weights = cp_weights::replicate,
                           .cp_attention = cp_attention::ring};
  return make_plan("ring", model, dims, once, training{.seq = 8 * ranks, .global_batch = 2, .precision = f64},
                   clusters::cpu);
}

}  // namespace sequences
