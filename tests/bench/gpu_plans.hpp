// SPDX-License-Identifier: Apache-2.0
// The models of the GPU measurements, as train_baseline.py has them, on one rank and on several.
#pragma once
#include <rankc/rankc.hpp>
#include <rankc/schedules/dual_pipe_v.hpp>
#include <rankc/schedules/interleaved_one_f_one_b.hpp>
#include <rankc/schedules/zero_bubble_v.hpp>

namespace bench {
using namespace rankc;

inline constexpr auto gpt2_124m =
    models::gpt2{.layers = 12, .hidden = 768, .heads = 12, .ffn = 3072, .vocab = 50304, .vocab_used = 50257};
inline constexpr auto gpt2_774m =
    models::gpt2{.layers = 36, .hidden = 1280, .heads = 20, .ffn = 5120, .vocab = 50304, .vocab_used = 50257};
inline constexpr auto gpt2_1_5b =
    models::gpt2{.layers = 48, .hidden = 1600, .heads = 25, .ffn = 6400, .vocab = 50304, .vocab_used = 50257};
constexpr auto llama3_8b_of(int layers) {
  return models::llama{
      .layers = layers, .hidden = 4096, .heads = 32, .kv_heads = 8, .ffn = 14336, .vocab = 128256};
}
inline constexpr auto llama3_8b_8l = llama3_8b_of(8);
inline constexpr auto llama3_1b = models::llama{
    .layers = 16, .hidden = 2048, .heads = 32, .kv_heads = 8, .ffn = 8192, .vocab = 128256, .tied = true};
/// Eight layers of Qwen3-30B-A3B's shape.
inline constexpr auto qwen3_moe_8l =
    models::qwen3_moe{.layers = 8,
                      .hidden = 2048,
                      .heads = 32,
                      .kv_heads = 4,
                      .head_dim = 128,
                      .experts = 128,
                      .top_k = 8,
                      .expert_ffn = 768,
                      .vocab = 151936,
                      .router_losses = {.balance = 0.001}};  // as in PyTorch's model

constexpr training gpt2_recipe(int batch, bool deterministic = false) {
  return {.seq = 1024, .global_batch = batch, .precision = bf16, .deterministic = deterministic};
}
constexpr training llama_recipe(int batch, recomputation recompute = {}, precision reductions = f32) {
  return {.seq = 8192,
          .global_batch = batch,
          .precision = bf16,
          .recompute = recompute,
          .reductions = reductions};
}
/// The same recipe with the linear layers' GEMMs in fp8.
constexpr training narrowed(training recipe, linear_precision to = fp8) {
  recipe.linears = to;
  return recipe;
}
inline constexpr parallel_dims one_rank{.world = 1};

template <class Schedule = schedules::gpipe>
constexpr auto on_node(auto model, training recipe, parallel_dims dims = one_rank, Schedule schedule = {1}) {
  return plan{
      .model = model, .dims = dims, .schedule = schedule, .recipe = recipe, .cluster = clusters::h200<1>};
}

inline constexpr auto gpt2_124m_b64 = on_node(gpt2_124m, gpt2_recipe(64));
inline constexpr auto gpt2_124m_b4 = on_node(gpt2_124m, gpt2_recipe(4));
inline constexpr auto gpt2_124m_b4_deterministic = on_node(gpt2_124m, gpt2_recipe(4, true));
inline constexpr auto gpt2_124m_b4_fp8 = on_node(gpt2_124m, narrowed(gpt2_recipe(4)));
inline constexpr auto gpt2_774m_b32 = on_node(gpt2_774m, gpt2_recipe(32));
inline constexpr auto gpt2_1_5b_b16 = on_node(gpt2_1_5b, gpt2_recipe(16));
inline constexpr auto gpt2_1_5b_b16_fp8 = on_node(gpt2_1_5b, narrowed(gpt2_recipe(16)));
inline constexpr auto gpt2_1_5b_b16_fp8_rows = on_node(gpt2_1_5b, narrowed(gpt2_recipe(16), fp8_rows));
inline constexpr auto llama3_8b_8l_b2_fp8 = on_node(llama3_8b_8l, narrowed(llama_recipe(2)));
inline constexpr auto llama3_8b_8l_b2_fp8_rows = on_node(llama3_8b_8l, narrowed(llama_recipe(2), fp8_rows));
inline constexpr auto llama3_1b_b4 = on_node(llama3_1b, llama_recipe(4));
inline constexpr auto llama3_8b_8l_b2 = on_node(llama3_8b_8l, llama_recipe(2));
inline constexpr auto llama3_8b_8l_b4 = on_node(llama3_8b_8l, llama_recipe(4));
inline constexpr auto llama3_8b_8l_b4_selective =
    on_node(llama3_8b_8l, llama_recipe(4, {.activations = true, .norms = true}));
inline constexpr auto llama3_8b_8l_b4_full = on_node(llama3_8b_8l, llama_recipe(4, {.full = true}));
inline constexpr auto llama3_8b_8l_s1024 =
    on_node(llama3_8b_8l, {.seq = 1024, .global_batch = 1, .precision = bf16});

/// Each sequence is one document, or documents are packed and end with GPT-2's or Llama 3's token.
constexpr training packed(training recipe, int end_of_document) {
  recipe.end_of_document = end_of_document;
  return recipe;
}
inline constexpr auto llama3_3b_12l =
    models::llama{.layers = 12, .hidden = 3072, .heads = 24, .kv_heads = 8, .ffn = 8192, .vocab = 128256};
inline constexpr training llama_4096{.seq = 4096, .global_batch = 2, .precision = bf16};
inline constexpr auto gpt2_124m_b16 = on_node(gpt2_124m, gpt2_recipe(16));
inline constexpr auto gpt2_124m_b16_documents = on_node(gpt2_124m, packed(gpt2_recipe(16), 50256));
inline constexpr auto llama3_3b_12l_b2 = on_node(llama3_3b_12l, llama_4096);
inline constexpr auto llama3_3b_12l_b2_documents = on_node(llama3_3b_12l, packed(llama_4096, 128001));

inline constexpr auto qwen3_moe_8l_b2 =
    on_node(qwen3_moe_8l, {.seq = 4096, .global_batch = 2, .precision = bf16});
inline constexpr auto qwen3_moe_8l_b4 =
    on_node(qwen3_moe_8l, {.seq = 4096, .global_batch = 4, .precision = bf16});

inline constexpr parallel_dims dp2{.world = 2, .dp_replicate = 2}, tp2{.world = 2, .tp = 2};
inline constexpr parallel_dims pp2{.world = 2, .pp = 2}, pp4{.world = 4, .pp = 4};
inline constexpr parallel_dims dp4{.world = 4, .dp_replicate = 4};
inline constexpr auto gpt2_124m_dp2 = on_node(gpt2_124m, gpt2_recipe(128), dp2);
inline constexpr auto gpt2_124m_dp4 = on_node(gpt2_124m, gpt2_recipe(256), dp4);
inline constexpr auto gpt2_1_5b_dp4 = on_node(gpt2_1_5b, gpt2_recipe(64), dp4);
inline constexpr auto llama3_8b_8l_dp2 = on_node(llama3_8b_8l, llama_recipe(4), dp2);
inline constexpr parallel_dims fsdp2{.world = 2, .dp_shard = 2},
    zero2{.world = 2, .dp_shard = 2, .reshard = reshard::after_step};
inline constexpr auto gpt2_124m_zero = on_node(gpt2_124m, gpt2_recipe(128), zero2);
inline constexpr auto llama3_8b_8l_fsdp = on_node(llama3_8b_8l, llama_recipe(4), fsdp2);
inline constexpr auto llama3_8b_8l_fsdp_bf16 = on_node(llama3_8b_8l, llama_recipe(4, {}, bf16), fsdp2);
inline constexpr auto llama3_8b_fsdp = on_node(llama3_8b_of(32), llama_recipe(2, {.full = true}), fsdp2);
inline constexpr auto llama3_8b_8l_zero = on_node(llama3_8b_8l, llama_recipe(4), zero2);
inline constexpr auto gpt2_774m_tp2_sp =
    on_node(gpt2_774m, gpt2_recipe(32), {.world = 2, .tp = 2, .sequence_parallel = true});
inline constexpr auto llama3_8b_8l_tp2 = on_node(llama3_8b_8l, llama_recipe(2), tp2);
inline constexpr auto llama3_8b_8l_tp2_sp =
    on_node(llama3_8b_8l, llama_recipe(2), {.world = 2, .tp = 2, .sequence_parallel = true});
inline constexpr auto llama3_8b_8l_cp2 =
    on_node(llama3_8b_8l, {.seq = 32768, .global_batch = 1, .precision = bf16},
            {.world = 2, .cp = 2, .ulysses = 2, .reshard = reshard::after_step});
inline constexpr auto llama3_8b_8l_cp2_ring =
    on_node(llama3_8b_8l, {.seq = 32768, .global_batch = 1, .precision = bf16},
            {.world = 2, .cp = 2, .cp_attention = cp_attention::ring, .reshard = reshard::after_step});
inline constexpr auto llama3_8b_8l_pp2 =
    on_node(llama3_8b_8l, llama_recipe(8), pp2, schedules::one_f_one_b{8});
inline constexpr auto llama3_8b_8l_pp2_zbv =
    on_node(llama3_8b_8l, llama_recipe(8), pp2, schedules::zero_bubble_v{8});
inline constexpr auto llama3_8b_8l_pp2_dual_v =
    on_node(llama3_8b_8l, llama_recipe(8), pp2, schedules::dual_pipe_v{8});
inline constexpr auto llama3_8b_8l_pp4 =
    on_node(llama3_8b_8l, llama_recipe(16), pp4, schedules::one_f_one_b{16});

inline constexpr auto llama3_8b = llama3_8b_of(32);
inline constexpr parallel_dims fsdp4{.world = 4, .dp_shard = 4},
    zero4{.world = 4, .dp_shard = 4, .reshard = reshard::after_step};
inline constexpr parallel_dims hsdp{.world = 4, .dp_replicate = 2, .dp_shard = 2};
inline constexpr auto llama3_8b_fsdp4 = on_node(llama3_8b, llama_recipe(8), fsdp4);
inline constexpr auto llama3_8b_fsdp4_bf16 = on_node(llama3_8b, llama_recipe(8, {}, bf16), fsdp4);
inline constexpr auto llama3_8b_zero4_bf16 = on_node(llama3_8b, llama_recipe(8, {}, bf16), zero4);
inline constexpr auto llama3_8b_hsdp = on_node(llama3_8b, llama_recipe(4), hsdp);
inline constexpr auto llama3_8b_tp4 =
    on_node(llama3_8b, llama_recipe(2), {.world = 4, .tp = 4, .sequence_parallel = true});
inline constexpr auto llama3_8b_pp4 = on_node(llama3_8b, llama_recipe(16), pp4, schedules::one_f_one_b{16});
inline constexpr auto llama3_8b_pp4_interleaved =
    on_node(llama3_8b, llama_recipe(16), pp4, schedules::interleaved_one_f_one_b{16, 2});
inline constexpr auto llama3_8b_pp4_zbv =
    on_node(llama3_8b, llama_recipe(16), pp4, schedules::zero_bubble_v{16});
inline constexpr auto llama3_8b_pp4_dual_v =
    on_node(llama3_8b, llama_recipe(16), pp4, schedules::dual_pipe_v{16});
inline constexpr auto qwen3_moe_8l_ep2 =
    on_node(qwen3_moe_8l, {.seq = 4096, .global_batch = 8, .precision = bf16},
            {.world = 2, .dp_shard = 2, .ep = 2, .reshard = reshard::after_step});
inline constexpr auto qwen3_moe_8l_ep4 =
    on_node(qwen3_moe_8l, {.seq = 4096, .global_batch = 16, .precision = bf16},
            {.world = 4, .dp_shard = 4, .ep = 4, .reshard = reshard::after_step});

}  // namespace bench
