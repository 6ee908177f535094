// SPDX-License-Identifier: Apache-2.0
// A user's model that declares its names in Hugging Face's files. No published family has such names: q, k
// and v are one tensor of unequal parts, gate and up are one transposed tensor, and positions are learned.
#pragma once
#include <rankc/rankc.hpp>

namespace hugging_face {

using namespace rankc;

struct own_model {
  int layers, hidden, heads, kv_heads, ffn, vocab;
  int vocab_used = 0;

  constexpr void check(report& out) const {
    check_sizes(out, {{"hidden", hidden}, {"heads", heads}, {"kv_heads", kv_heads}, {"ffn", ffn}});
  }
  constexpr auto stack() const {
    const int of_head = hidden / heads;
    const dim features{"hidden", hidden}, queries{"heads", hidden, of_head, "head_dim"},
        pairs{"kv_heads", kv_heads * of_head, of_head, "head_dim"};
    const parameter_handle words = token_table(dim{"vocab", vocab}, features, "words");
    const models::attention_half attention{features, queries, pairs, {layers}};
    return sequential(models::embedding{words, true},
                      repeat{layers, models::block{attention, dim{"ffn", ffn}}}, models::head{words});
  }
  constexpr hugging_face_format hugging_face() const {
    return {.model_type = "own",
            .architecture = "OwnForCausalLM",
            .prefix = "trunk.",
            .positions = "context",
            .vocabulary = "tokens",
            .tensors = {{"words", "trunk.words.weight", false, rows_in_files::vocabulary},
                        {"wpe", "trunk.places.weight", false, rows_in_files::positions},
                        {"norm", "trunk.last.gain"},
                        {"lm_head", "readout.weight", false, rows_in_files::vocabulary, "words"},
                        {"layers.#.norm1", "trunk.#.first.gain"},
                        {"layers.#.wq", "trunk.#.mix.qkv.weight"},
                        {"layers.#.wk", "trunk.#.mix.qkv.weight"},
                        {"layers.#.wv", "trunk.#.mix.qkv.weight"},
                        {"layers.#.wo", "trunk.#.mix.out.weight"},
                        {"layers.#.norm2", "trunk.#.second.gain"},
                        {"layers.#.w1", "trunk.#.wide.gate_up.weight", true},
                        {"layers.#.w3", "trunk.#.wide.gate_up.weight", true},
                        {"layers.#.w2", "trunk.#.wide.down.weight", true}},
            .fields = {{"depth", layers},
                       {"width", hidden},
                       {.key = "query_heads", .value = heads, .also = "n_heads"},
                       {.key = "pairs", .value = kv_heads, .follows = {.of = "query_heads"}},
                       {.key = "mlp_width", .value = ffn, .follows = {.of = "width", .factor = 3}},
                       {"gate", "silu", "silu"}},
            .exported = {{"dropout", 0.0}},
            .buffers = {".mix.mask"}};
  }
};

}  // namespace hugging_face
