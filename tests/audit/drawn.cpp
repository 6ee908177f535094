// SPDX-License-Identifier: Apache-2.0
#include "drawn.hpp"

#include <rankc/plan/make_plan.hpp>
#include <rankc/models/gpt2.hpp>
#include <rankc/models/llama.hpp>
#include <rankc/models/qwen3_moe.hpp>

namespace audit {

namespace {

using namespace rankc;
using fuzz::draws;

sizes draw_sizes(draws& d) {
  sizes s{.is_llama = d.chance(50),
          .is_tied = d.chance(50),
          .blocks = d.between(1, 6),
          .heads = d.one_of({4, 4, 12, 6})};
  s.hidden = s.heads * d.one_of({2, 4, 6});
  s.kv_heads = s.is_llama ? s.heads / d.one_of({1, 2}) : s.heads;
  s.ffn = d.one_of({12, 24, 36});
  s.vocab = d.one_of({24, 48, 36, 240});
  return s;
}

parallel_dims draw_dims(draws& d) {
  for (;;) {
    parallel_dims x;
    x.dp_replicate = d.one_of({1, 1, 2, 3});
    x.dp_shard = d.one_of({1, 1, 2, 2, 3, 4});
    x.reshard = d.one_of({reshard::standard, reshard::after_layer, reshard::after_layer, reshard::after_stage,
                          reshard::after_step});
    x.prefetch = d.one_of({0, 1, 1, 2, 3});
    x.tp = d.one_of({1, 1, 2, 2, 3, 4});
    x.pp = d.one_of({1, 1, 2, 2, 3});
    x.sequence_parallel = x.tp > 1 && d.chance(60);
    x.cp = d.one_of({1, 1, 2, 3});
    if (x.cp > 1 && d.chance(40)) x.cp_weights = cp_weights::replicate;
    x.world = x.dp_replicate * x.dp_shard * x.cp * x.tp * x.pp;
    if (x.world > 1 && x.world <= 12) return x;
  }
}

recomputation draw_recomputation(draws& d) {
  recomputation r{.full = d.chance(50)};
  if (!r.full) {
    r.attention = d.chance(50);
    r.activations = d.chance(50);
    r.norms = d.chance(60);
  }
  r.every = d.one_of({1, 1, 2});
  return r;
}

fuzz::schedule_choice draw_schedule(draws& d, int pp) {
  fuzz::schedule_choice c{.by = static_cast<fuzz::order>(d.below(fuzz::n_orders - 1)),
                          .microbatches = d.one_of({1, 2, 2, 3, 4})};
  if (pp == 1 && d.chance(60)) c.by = fuzz::order::gpipe;
  c.stages_per_rank = fuzz::stages_per_rank(c.by, 2);
  return c;
}

}  // namespace

drawn draw(std::uint64_t seed, std::uint64_t index, const std::string& name) {
  draws d(seed, index, "audit");
  sizes s = draw_sizes(d);
  parallel_dims dims = draw_dims(d);
  if (draws of(seed, index, "heads"); of.chance(50)) dims.ulysses = dims.cp;
  else if (of.chance(50)) dims.cp_attention = cp_attention::ring;
  if (draws of(seed, index, "groups");
      of.chance(25) && dims.world / dims.cp <= 3) {  // rings of two groups with two ranks each
    dims.world = dims.world / dims.cp * 4;
    dims.cp = 4;
    dims.ulysses = 2;
    dims.cp_attention = cp_attention::ring;
  }
  if (draws of(seed, index, "experts"); of.chance(40)) {
    s.is_llama = false;
    s.experts = of.one_of({4, 6, 8});
    s.picks = of.between(1, 3);
    dims.ep = of.one_of({1, 2, 2, 3, 4, 6});
    if (dims.ep > 1) dims.sequence_parallel = dims.tp > 1;
    if (draws columns(seed, index, "columns"); dims.ep > 1 && columns.chance(60)) {
      dims.etp = columns.one_of({2, 2, 3, 4});
      if (columns.chance(50)) {
        dims.dp_shard *= dims.etp;
        dims.world *= dims.etp;
      }
    }
    if (draws layouts(seed, index, "layouts"); dims.ep > 1 && layouts.chance(50)) {
      if (dims.dp_replicate == 1 && layouts.chance(50)) {
        dims.dp_replicate = 2;
        dims.world *= 2;
      }
      dims.expert_layout = expert_layout::folded_over_replicas;
    }
    if (draws across(seed, index, "across"); dims.ep > 1 && across.chance(40)) {
      dims.tp = 4;
      dims.ep = 2;
      dims.etp = across.one_of({1, 1, 1, 2});
      dims.dp_shard = across.one_of({1, 1, 1, 2});
      dims.cp = dims.ulysses = 1;
      dims.sequence_parallel = true;
      dims.world = dims.dp_replicate * dims.dp_shard * dims.cp * dims.tp * dims.pp;
    }
    if (draws apart(seed, index, "apart"); dims.ep > 1 && apart.chance(35)) {
      dims.expert_layout = expert_layout::independent;
      dims.etp = 1;
      dims.world *= dims.ep;
    }
  }
  const fuzz::schedule_choice by = draw_schedule(d, dims.pp);
  const int ranks = dims.dp_replicate * dims.dp_shard, any_seq = d.one_of({4, 12, 24});
  const int seq = dims.cp == 4 ? 24 : any_seq;  // two chunks for each of four
  training recipe{.seq = seq, .global_batch = by.microbatches * ranks * d.between(1, 2), .precision = f64};
  if (d.chance(40)) recipe.recompute = draw_recomputation(d);
  const auto make = [&](const auto& model) {
    return make_plan(name + std::to_string(index), model, dims, fuzz::make_schedule(by, dims.pp), recipe,
                     clusters::cpu);
  };
  if (s.experts)
    return {s, make(models::qwen3_moe{.layers = s.blocks,
                                      .hidden = s.hidden,
                                      .heads = s.heads,
                                      .kv_heads = s.kv_heads,
                                      .head_dim = s.hidden / s.heads,
                                      .experts = s.experts,
                                      .top_k = s.picks,
                                      .expert_ffn = s.ffn,
                                      .vocab = s.vocab,
                                      .tied = s.is_tied})};
  return {s, s.is_llama ? make(models::llama{.layers = s.blocks,
                                             .hidden = s.hidden,
                                             .heads = s.heads,
                                             .kv_heads = s.kv_heads,
                                             .ffn = s.ffn,
                                             .vocab = s.vocab,
                                             .tied = s.is_tied})
                        : make(models::gpt2{.layers = s.blocks,
                                            .hidden = s.hidden,
                                            .heads = s.heads,
                                            .ffn = s.ffn,
                                            .vocab = s.vocab,
                                            .tied = s.is_tied})};
}

std::vector<drawn> draw_legal(std::uint64_t seed, int count, const std::string& name) {
  std::vector<drawn> all;
  for (std::uint64_t index = 0; static_cast<int>(all.size()) < count; ++index)
    if (drawn d = draw(seed, index, name); accepts(d.plan.diagnostics)) all.push_back(std::move(d));
  return all;
}

}  // namespace audit
