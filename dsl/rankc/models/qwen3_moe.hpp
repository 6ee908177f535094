// SPDX-License-Identifier: Apache-2.0
// Qwen3-MoE: a Qwen3 with experts instead of the MLP in some or all layers.
// Source: Qwen Team 2025; transformers, models/qwen3_moe.
#pragma once
#include <rankc/models/llama_format.hpp>

#include <initializer_list>
#include <vector>

namespace rankc::models {

/// Layer indices such as {0, 3}; at most 16 are kept. The count is exact even if there are more, for RC253.
class layer_list {
 public:
  static constexpr int most = 16;
  constexpr layer_list() = default;
  constexpr layer_list(std::initializer_list<int> numbers) {
    for (int n : numbers) {
      if (count_ < most) number_[count_] = n;
      ++count_;
    }
  }
  constexpr int count() const { return count_; }
  constexpr int operator[](int i) const { return number_[i]; }
  constexpr std::vector<int> numbers() const { return {number_, number_ + (count_ < most ? count_ : most)}; }
  constexpr bool has(int layer) const {
    for (int i = 0; i < count_ && i < most; ++i)
      if (number_[i] == layer) return true;
    return false;
  }

 private:
  int number_[most]{}, count_ = 0;
};

constexpr std::vector<hugging_face_tensor> qwen3_expert_tensors() {
  return {{"layers.#.router", "model.layers.#.mlp.gate.weight"},
          {"layers.#.experts.gate", "model.layers.#.mlp.experts.@.gate_proj.weight", true},
          {"layers.#.experts.up", "model.layers.#.mlp.experts.@.up_proj.weight", true},
          {"layers.#.experts.down", "model.layers.#.mlp.experts.@.down_proj.weight"}};
}

/// True for layers with experts: every `step`th layer that is not in `dense`.
struct sparse_layers {
  int step;
  layer_list dense;
  constexpr bool operator()(int layer) const { return (layer + 1) % step == 0 && !dense.has(layer); }
};

/// A Qwen3-MoE of any size. Layer i (from 0) has experts if decoder_sparse_step divides i + 1 and i is not in
/// mlp_only_layers. Other layers have an MLP of width `ffn`.
/// Units: vocab may be padded; vocab_used is the number of tokens in use (0: all).
/// Errors: RC202 to RC209, RC215, RC219, RC238, RC250, RC251, RC253, RC256, RC258.
struct qwen3_moe {
  static constexpr std::string_view family = "qwen3_moe";
  int layers, hidden, heads, kv_heads, head_dim, experts, top_k, expert_ffn, vocab;
  int ffn = 0;
  int decoder_sparse_step = 1;
  layer_list mlp_only_layers{};
  bool norm_topk_prob = true;
  double theta = 1000000;
  int vocab_used = 0;
  bool masks_padding = false;
  bool tied = false;
  double norm_eps = 1e-6;
  rankc::rope_scaling rope_scaling{};
  rankc::router_losses router_losses{};
  double capacity = 0;                               // as in experts_of_layer
  int capacity_group = 0;                            // as in experts_of_layer
  rankc::overflow overflow = rankc::overflow::drop;  // if an expert is at capacity
  bool expert_load = false;  // metrics show the experts' load even without a router loss or a capacity

  constexpr void check(report& out) const {
    check_sizes(out, {{"head_dim", head_dim}, {"decoder_sparse_step", decoder_sparse_step}});
    check_mlp_only(out);
    if (decoder_sparse_step >= 1 && count_dense() > 0) check_sizes(out, {{"ffn", ffn}});
    check_llama(out, *this);
  }
  constexpr model_routers routers() const { return declared_routers(*this, layers - count_dense()); }
  constexpr model_sizes sizes() const { return llama_sizes(*this); }
  constexpr decoder describe() const {
    decoder d = llama_decoder(*this);
    d.qk_norm = qk_norm_kind::head;
    d.experts = declared_experts(*this);
    d.experts.router.normalized = norm_topk_prob;
    d.routers = routers();
    return d;
  }
  constexpr auto stack() const {
    const decoder d = describe();
    return sequential(d.embedding(), mixed{layers, d.block(), d.expert_block(), sparse()}, d.head());
  }
  constexpr hugging_face_format hugging_face() const {
    const decoder d = describe();
    return {
        .model_type = "qwen3_moe",
        .architecture = "Qwen3MoeForCausalLM",
        .tensors = join(qwen3_tensors(), qwen3_expert_tensors()),
        .fields = join(llama_fields(d), {{"attention_bias", false, false},
                                         {"num_key_value_heads", kv_heads, 4},
                                         head_dim_field(d),
                                         {"use_sliding_window", false, false},
                                         {.key = "num_experts",
                                          .value = experts,
                                          .missing = 128,
                                          .also = "num_local_experts"},  // transformers 5
                                         {"num_experts_per_tok", top_k, 8},
                                         {"moe_intermediate_size", expert_ffn, 768},
                                         {"norm_topk_prob", norm_topk_prob, false},
                                         {"decoder_sparse_step", decoder_sparse_step, 1},
                                         {"mlp_only_layers", mlp_only_layers.numbers(), std::vector<int>{}}}),
        .buffers = llama_buffers(),
        .experts = experts,
        .balance = balance_of(router_losses)};
  }

 private:
  /// RC253: mlp_only_layers names layers that the model does not have, or too many.
  constexpr void check_mlp_only(report& out) const {
    if (mlp_only_layers.count() > layer_list::most)
      refuse(out, 253) << "mlp_only_layers names " << mlp_only_layers.count()
                       << " layers; it may name at most " << layer_list::most
                       << " (decoder_sparse_step can describe more, at regular distances)";
    for (int i = 0; i < mlp_only_layers.count() && i < layer_list::most; ++i)
      if (mlp_only_layers[i] < 0 || mlp_only_layers[i] >= layers)
        refuse(out, 253) << "mlp_only_layers names layer " << mlp_only_layers[i]
                         << "; the model has layers 0 to " << layers - 1;
  }
  constexpr sparse_layers sparse() const { return {decoder_sparse_step, mlp_only_layers}; }
  constexpr int count_dense() const {
    int n = 0;
    for (int layer = 0; layer < layers; ++layer) n += !sparse()(layer);
    return n;
  }
};

}  // namespace rankc::models
