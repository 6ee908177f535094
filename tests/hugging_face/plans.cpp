// SPDX-License-Identifier: Apache-2.0
#include "plans.hpp"

#include "family_plans.hpp"

#include <rankc/schedules/zero_bubble_v.hpp>

#include "06_gated_attention.hpp"
#include "own_model.hpp"

namespace hugging_face {

namespace {

using namespace rankc;

constexpr training recipe{.seq = 32, .global_batch = 4, .precision = f64, .lr = 1e-2};
constexpr training adapting{.seq = 32,
                            .global_batch = 4,
                            .precision = f64,
                            .lr = 1e-2,
                            .lora = {.rank = 2, .alpha = 4, .targets = {"wq", "w2"}}};

constexpr training adapting_attention{.seq = 32,
                                      .global_batch = 4,
                                      .precision = f64,
                                      .lr = 1e-2,
                                      .lora = {.rank = 2, .alpha = 4, .targets = {"wq", "wv"}}};

constexpr training of_torch{.seq = 64, .global_batch = 8, .precision = f64};
constexpr training of_four{.seq = 64, .global_batch = 4, .precision = f64};
constexpr training undecayed{.seq = 64, .global_batch = 8, .precision = f64, .weight_decay = 0, .clip = 0};

/// Two of an oracle's sequences, packed as two documents; the first ends with this token.
constexpr training packed(int end) {
  return {.seq = 64, .global_batch = 1, .precision = f64, .lr = 1e-2, .end_of_document = end};
}

class list : public plan_list {
 public:
  list() : plan_list("hf", recipe) {}
  void add_layouts(const char* name, const auto& model) {
    add(name, "one", model, {}, schedules::gpipe{1});
    add(name, "tp2_pp2", model, {.world = 4, .tp = 2, .pp = 2}, schedules::one_f_one_b{2});
    add(name, "shards", model, {.world = 3, .dp_shard = 3}, schedules::gpipe{1}, [] {
      training r = recipe;
      r.global_batch = 12;
      return r;
    }());
    add(name, "dp2_tp2", model, {.world = 4, .dp_replicate = 2, .tp = 2, .sequence_parallel = true},
        schedules::gpipe{2});
  }
  /// Balance losses depend on the microbatch: one of the whole batch and four of one row each have different
  /// losses.
  void add_balanced_layouts(const char* name, const auto& model) {
    add(name, "one", model, {}, schedules::gpipe{1});
    add(name, "tp2_pp2", model, {.world = 4, .tp = 2, .pp = 2}, schedules::one_f_one_b{4});
    add(name, "shards", model, {.world = 3, .dp_shard = 3}, schedules::gpipe{1}, [] {
      training r = recipe;
      r.global_batch = 12;
      return r;
    }());
    add(name, "dp2_tp2", model, {.world = 4, .dp_replicate = 2, .tp = 2, .sequence_parallel = true},
        schedules::gpipe{1});
    add(name, "cp_zbv", model, {.world = 4, .cp = 2, .pp = 2}, schedules::zero_bubble_v{4});
  }
};

}  // namespace

std::vector<split_plan> plans() {
  list l;
  l.add_layouts("gpt2", models::gpt2{.layers = 2, .hidden = 32, .heads = 4, .ffn = 128, .vocab = 128});
  // The same models with padding rows in the vocabulary.
  constexpr models::gpt2 padded{
      .layers = 2, .hidden = 32, .heads = 4, .ffn = 128, .vocab = 132, .vocab_used = 128};
  l.add("gpt2_padded", "one", padded, {}, schedules::gpipe{1});
  l.add("gpt2_padded", "tp2", padded, {.world = 2, .tp = 2}, schedules::gpipe{1});
  l.add("llama_gqa_padded", "tp2",
        models::llama{.layers = 3,
                      .hidden = 32,
                      .heads = 4,
                      .kv_heads = 2,
                      .ffn = 80,
                      .vocab = 130,
                      .theta = 10000,
                      .vocab_used = 128},
        {.world = 2, .tp = 2}, schedules::gpipe{1});
  // The same with a mask of the padding. On tp 2, the second rank of `llama_gqa_masked` has padding alone.
  constexpr models::gpt2 masked{.layers = 2,
                                .hidden = 32,
                                .heads = 4,
                                .ffn = 128,
                                .vocab = 132,
                                .vocab_used = 128,
                                .masks_padding = true};
  l.add("gpt2_masked", "one", masked, {}, schedules::gpipe{1});
  l.add("gpt2_masked", "dp2_tp2", masked, {.world = 4, .dp_replicate = 2, .tp = 2, .sequence_parallel = true},
        schedules::gpipe{2});
  l.add("llama_gqa_masked", "tp2_pp2",
        models::llama{.layers = 3,
                      .hidden = 32,
                      .heads = 4,
                      .kv_heads = 2,
                      .ffn = 80,
                      .vocab = 256,
                      .theta = 10000,
                      .vocab_used = 128,
                      .masks_padding = true},
        {.world = 4, .tp = 2, .pp = 2}, schedules::one_f_one_b{2});
  l.add("gpt2", "adapted", models::gpt2{.layers = 2, .hidden = 32, .heads = 4, .ffn = 128, .vocab = 128}, {},
        schedules::gpipe{1}, adapting);
  l.add_layouts("gpt2_sharded",
                models::gpt2{.layers = 2, .hidden = 32, .heads = 4, .ffn = 128, .vocab = 160});
  l.add_layouts(
      "llama_gqa",
      models::llama{
          .layers = 3, .hidden = 32, .heads = 4, .kv_heads = 2, .ffn = 80, .vocab = 128, .theta = 10000});
  l.add_layouts("llama_tied_bf16", models::llama{.layers = 2,
                                                 .hidden = 32,
                                                 .heads = 8,
                                                 .kv_heads = 2,
                                                 .ffn = 96,
                                                 .vocab = 192,
                                                 .theta = 500000,
                                                 .tied = true,
                                                 .norm_eps = 1e-6});
  for (const auto& [layout, end] : {std::pair{"0", 71}, {"1", 70}})
    l.add("packed_gpt2", layout,
          models::gpt2{.layers = 2, .hidden = 32, .heads = 4, .ffn = 128, .vocab = 128}, {},
          schedules::gpipe{1}, packed(end));
  for (const auto& [layout, end] : {std::pair{"0", 109}, {"1", 172}})
    l.add("packed_llama_tied_bf16", layout,
          models::llama{.layers = 2,
                        .hidden = 32,
                        .heads = 8,
                        .kv_heads = 2,
                        .ffn = 96,
                        .vocab = 192,
                        .theta = 500000,
                        .tied = true,
                        .norm_eps = 1e-6},
          {}, schedules::gpipe{1}, packed(end));
  constexpr models::qwen3 qwen{.layers = 2,
                               .hidden = 40,
                               .heads = 4,
                               .kv_heads = 2,
                               .head_dim = 16,
                               .ffn = 72,
                               .vocab = 128,
                               .tied = true};
  l.add_layouts("qwen3", qwen);
  l.add("qwen3", "adapted", qwen, {}, schedules::gpipe{1}, adapting);
  constexpr rope_scaling slowed{.by = rope_scaling::llama3,
                                .factor = 8,
                                .low_freq_factor = 1,
                                .high_freq_factor = 4,
                                .original_positions = 16};
  constexpr models::llama longer{.layers = 2,
                                 .hidden = 32,
                                 .heads = 4,
                                 .kv_heads = 1,
                                 .ffn = 64,
                                 .vocab = 128,
                                 .theta = 10000,
                                 .tied = true,
                                 .rope_scaling = slowed,
                                 .head_dim = 16};
  l.add("llama_rope_llama3", "one", longer, {}, schedules::gpipe{1});
  constexpr models::qwen3_moe sparse{.layers = 2,
                                     .hidden = 32,
                                     .heads = 4,
                                     .kv_heads = 2,
                                     .head_dim = 16,
                                     .experts = 8,
                                     .top_k = 2,
                                     .expert_ffn = 16,
                                     .vocab = 128,
                                     .router_losses = {.balance = 0.02}};
  l.add_balanced_layouts("qwen3_moe_norm", sparse);
  l.add(
      "qwen3_moe_nonorm", "one",
      [&] {
        models::qwen3_moe m = sparse;
        m.norm_topk_prob = false;
        m.tied = true;
        m.router_losses.balance = 0.05;
        return m;
      }(),
      {}, schedules::gpipe{1});
  constexpr models::qwen3_moe partly{.layers = 3,
                                     .hidden = 32,
                                     .heads = 4,
                                     .kv_heads = 1,
                                     .head_dim = 8,
                                     .experts = 8,
                                     .top_k = 2,
                                     .expert_ffn = 12,
                                     .vocab = 128,
                                     .ffn = 48,
                                     .mlp_only_layers = {0},
                                     .router_losses = {.balance = 0.01}};
  l.add("qwen3_moe_mlp_only", "one", partly, {}, schedules::gpipe{1});
  l.add(
      "qwen3_moe_sparse_step", "one",
      [&] {
        models::qwen3_moe m = partly;
        m.layers = 4;
        m.mlp_only_layers = {};
        m.decoder_sparse_step = 2;
        m.tied = true;
        return m;
      }(),
      {}, schedules::gpipe{1});
  l.add_balanced_layouts("mixtral", models::mixtral{.layers = 2,
                                                    .hidden = 32,
                                                    .heads = 4,
                                                    .kv_heads = 2,
                                                    .experts = 8,
                                                    .top_k = 2,
                                                    .expert_ffn = 16,
                                                    .vocab = 128,
                                                    .router_losses = {.balance = 0.02}});
  // Lines of oracles/training/torch_losses_moe.jsonl, from 0 on.
  constexpr models::qwen3 tiny{.layers = 4,
                               .hidden = 64,
                               .heads = 4,
                               .kv_heads = 2,
                               .head_dim = 32,
                               .ffn = 176,
                               .vocab = 512,
                               .vocab_used = 500,
                               .tied = true};
  constexpr models::qwen3_moe tiny_moe{.layers = 4,
                                       .hidden = 64,
                                       .heads = 4,
                                       .kv_heads = 2,
                                       .head_dim = 32,
                                       .experts = 8,
                                       .top_k = 2,
                                       .expert_ffn = 48,
                                       .vocab = 512,
                                       .vocab_used = 500,
                                       .router_losses = {.balance = 0.001}};
  l.add("torch_qwen3_0", "one", tiny, {}, schedules::gpipe{1}, of_four);
  l.add("torch_qwen3_1", "one", tiny, {}, schedules::gpipe{1}, of_torch);
  l.add("torch_qwen3_2", "one", tiny, {}, schedules::gpipe{4}, undecayed);
  l.add("torch_moe_3", "one", tiny_moe, {}, schedules::gpipe{1}, of_four);
  l.add("torch_moe_3", "cp", tiny_moe, {.world = 4, .dp_shard = 2, .cp = 2}, schedules::gpipe{1}, of_four);
  l.add("torch_moe_4", "one", tiny_moe, {}, schedules::gpipe{1}, of_torch);
  l.add("torch_moe_4", "dp2_tp2", tiny_moe,
        {.world = 4, .dp_replicate = 2, .tp = 2, .sequence_parallel = true}, schedules::gpipe{1}, of_torch);
  l.add("torch_moe_5", "one", tiny_moe, {}, schedules::gpipe{4}, undecayed);
  l.add("torch_moe_5", "zbv", tiny_moe, {.world = 4, .dp_shard = 2, .pp = 2}, schedules::zero_bubble_v{4},
        undecayed);
  l.add("gpt2_untied", "one",
        models::gpt2{.layers = 2, .hidden = 16, .heads = 4, .ffn = 48, .vocab = 64, .tied = false}, {},
        schedules::gpipe{1});
  constexpr own_model own{
      .layers = 2, .hidden = 16, .heads = 4, .kv_heads = 2, .ffn = 48, .vocab = 34, .vocab_used = 33};
  l.add("own", "one", own, {}, schedules::gpipe{1});
  l.add("own", "tp2_pp2", own, {.world = 4, .tp = 2, .pp = 2}, schedules::one_f_one_b{2});
  l.add("own", "adapted", own, {}, schedules::gpipe{1}, adapting_attention);
  l.add("no_family", "one",
        ::plans::gated_llama{.layers = 2, .hidden = 12, .heads = 2, .ffn = 10, .vocab = 32}, {},
        schedules::gpipe{1});
  add_family_plans(l);
  return l.out;
}

}  // namespace hugging_face
