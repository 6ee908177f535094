// SPDX-License-Identifier: Apache-2.0
// GPT-2: learned positions, LayerNorm, biases, GELU, multi-head attention, a tied head.
// Source: Radford et al. 2019; names and padding of the vocabulary as in nanoGPT; files as in transformers,
// models/gpt2.
#pragma once
#include <rankc/models/decoder.hpp>
#include <rankc/models/hugging_face.hpp>

namespace rankc::models {

/// The tensors of a GPT-2. Its Conv1D keeps weights as (in, out), and q, k and v are one tensor.
constexpr std::vector<hugging_face_tensor> gpt2_tensors() {
  return {{"wte", "transformer.wte.weight", false, rows_in_files::vocabulary},
          {"wpe", "transformer.wpe.weight", false, rows_in_files::positions},
          {"norm", "transformer.ln_f.weight"},
          {"norm.bias", "transformer.ln_f.bias"},
          {"lm_head", "lm_head.weight", false, rows_in_files::vocabulary, "wte"},
          {"layers.#.norm1", "transformer.h.#.ln_1.weight"},
          {"layers.#.norm1.bias", "transformer.h.#.ln_1.bias"},
          {"layers.#.wq", "transformer.h.#.attn.c_attn.weight", true},
          {"layers.#.wk", "transformer.h.#.attn.c_attn.weight", true},
          {"layers.#.wv", "transformer.h.#.attn.c_attn.weight", true},
          {"layers.#.wq.bias", "transformer.h.#.attn.c_attn.bias"},
          {"layers.#.wk.bias", "transformer.h.#.attn.c_attn.bias"},
          {"layers.#.wv.bias", "transformer.h.#.attn.c_attn.bias"},
          {"layers.#.wo", "transformer.h.#.attn.c_proj.weight", true},
          {"layers.#.wo.bias", "transformer.h.#.attn.c_proj.bias"},
          {"layers.#.norm2", "transformer.h.#.ln_2.weight"},
          {"layers.#.norm2.bias", "transformer.h.#.ln_2.bias"},
          {"layers.#.w1", "transformer.h.#.mlp.c_fc.weight", true},
          {"layers.#.w1.bias", "transformer.h.#.mlp.c_fc.bias"},
          {"layers.#.w2", "transformer.h.#.mlp.c_proj.weight", true},
          {"layers.#.w2.bias", "transformer.h.#.mlp.c_proj.bias"}};
}

/// A GPT-2 of any size.
/// Units: vocab may be padded; vocab_used is the number of tokens in use (0: all).
/// Errors: RC202 to RC209, RC215, RC219, RC250.
struct gpt2 {
  static constexpr std::string_view family = "gpt2";
  int layers, hidden, heads, ffn, vocab;
  int vocab_used = 0;
  bool masks_padding = false;
  bool tied = true;
  double norm_eps = default_norm_eps;

  constexpr void check(report& out) const {
    check_sizes(out, {{"hidden", hidden}, {"heads", heads}, {"ffn", ffn}, {"vocab", vocab}});
    describe().check(out);
  }
  constexpr model_sizes sizes() const {
    return {.layers = layers,
            .hidden = hidden,
            .heads = heads,
            .ffn = ffn,
            .vocab = vocab,
            .vocab_used = vocab_used,
            .masks_padding = masks_padding,
            .tied_embeddings = tied};
  }
  constexpr decoder describe() const {
    return {.sizes = sizes(),
            .norm_eps = norm_eps,
            .norm = norm_kind::layer,
            .biases = true,
            .by = activation::gelu};
  }
  constexpr auto stack() const { return describe().stack(); }
  /// An export without a folder writes dropout 0, as the plan trains. The default of transformers is 0.1.
  constexpr hugging_face_format hugging_face() const {
    return {.model_type = "gpt2",
            .architecture = "GPT2LMHeadModel",
            .prefix = "transformer.",
            .positions = "n_positions",
            .tensors = gpt2_tensors(),
            .fields = {{"n_layer", layers},
                       {"n_embd", hidden},
                       {"n_head", heads},
                       {.key = "n_inner", .value = ffn, .follows = {.of = "n_embd", .factor = 4}},
                       {"activation_function", "gelu_new", "gelu_new"},
                       {"layer_norm_epsilon", norm_eps, 1e-5},
                       {"tie_word_embeddings", tied, true},
                       {"scale_attn_weights", true, true},
                       {"scale_attn_by_inverse_layer_idx", false, false},
                       {"add_cross_attention", false, false}},
            .exported = {{"attn_pdrop", 0.0}, {"embd_pdrop", 0.0}, {"resid_pdrop", 0.0}},
            .buffers = {".attn.bias", ".attn.masked_bias"}};
  }
};

}  // namespace rankc::models
