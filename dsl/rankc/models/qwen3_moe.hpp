// SPDX-License-Identifier: Apache-2.0
// Qwen3-MoE: a Qwen3 some or all of whose layers have experts instead of an MLP.
// Source: Qwen Team 2025; transformers, models/qwen3_moe.
#pragma once
#include <rankc/models/decoder.hpp>

#include <initializer_list>

namespace rankc::models {

/// Numbers of layers, as {0, 3}: of more than it has room for it has the count alone.
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
  constexpr bool has(int layer) const {
    for (int i = 0; i < count_ && i < most; ++i)
      if (number_[i] == layer) return true;
    return false;
  }

 private:
  int number_[most]{}, count_ = 0;
};

/// Which layers have experts: each `step`th, but for some.
struct sparse_layers {
  int step;
  layer_list dense;
  constexpr bool operator()(int layer) const { return (layer + 1) % step == 0 && !dense.has(layer); }
};

/// A Qwen3-MoE of any size. Layers have experts where their number from 1 on divides by decoder_sparse_step
/// and their number from 0 on is none of mlp_only_layers; others have an MLP of `ffn`. `vocab` may be padded;
/// `vocab_used` (0: all) says how many tokens exist.
struct qwen3_moe {
  static constexpr std::string_view family = "qwen3_moe";
  int layers, hidden, heads, kv_heads, head_dim, experts, top_k, expert_ffn, vocab;
  int ffn = 0;
  int decoder_sparse_step = 1;
  layer_list mlp_only_layers{};
  bool norm_topk_prob = true;
  double theta = 1000000;
  int vocab_used = 0;
  bool tied = false;
  double norm_eps = 1e-6;
  rankc::rope_scaling rope_scaling{};
  rankc::router_losses router_losses{};
  double capacity = 0;     // how many picks an expert takes, as experts_of_layer has it
  int capacity_group = 0;  // of so many positions of a sequence; 0: of all
  rankc::overflow overflow = rankc::overflow::drop;  // where picks find their expert full
  bool expert_load =
      false;  // metrics say how evenly experts were chosen, also where no loss or capacity counts choices

  constexpr void check(report& out) const {
    check_sizes(out, {{"hidden", hidden},
                      {"heads", heads},
                      {"kv_heads", kv_heads},
                      {"head_dim", head_dim},
                      {"experts", experts},
                      {"top_k", top_k},
                      {"expert_ffn", expert_ffn},
                      {"vocab", vocab},
                      {"decoder_sparse_step", decoder_sparse_step}});
    check_mlp_only(out);
    if (decoder_sparse_step >= 1 && count_dense() > 0) check_sizes(out, {{"ffn", ffn}});
    describe().check(out);
  }
  constexpr model_routers routers() const {
    return {layers - count_dense(), experts, top_k, router_losses, capacity != 0, overflow, expert_load};
  }
  constexpr model_sizes sizes() const {
    return {.layers = layers,
            .hidden = hidden,
            .heads = heads,
            .kv_heads = kv_heads,
            .ffn = ffn,
            .vocab = vocab,
            .experts = experts,
            .top_k = top_k,
            .vocab_used = vocab_used,
            .tied_embeddings = tied,
            .rotary = true,
            .head_dim = head_dim};
  }
  constexpr decoder describe() const {
    return {.sizes = sizes(),
            .norm_eps = norm_eps,
            .theta = theta,
            .rope_scaling = rope_scaling,
            .head_norms = true,
            .experts = {.count = experts,
                        .picks = top_k,
                        .ffn = expert_ffn,
                        .router = {.normalized = norm_topk_prob},
                        .capacity = capacity,
                        .capacity_group = capacity_group},
            .routers = routers()};
  }
  constexpr auto stack() const {
    const decoder d = describe();
    return sequential(d.embedding(), mixed{layers, d.block(), d.expert_block(), sparse()}, d.head());
  }

 private:
  /// RC253: layers without experts are some of the model's.
  constexpr void check_mlp_only(report& out) const {
    if (mlp_only_layers.count() > layer_list::most)
      refuse(out, 253) << "mlp_only_layers names " << mlp_only_layers.count() << " layers; it names at most "
                       << layer_list::most << " (decoder_sparse_step leaves out as many as are regular)";
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
