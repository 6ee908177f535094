// SPDX-License-Identifier: Apache-2.0
// The scratch that attention needs beside its operands, in bytes: the generator plans it, the runtime keeps
// to it.
#pragma once
#include <rankc/contract/targets.hpp>
#include <algorithm>
#include <cstddef>

namespace rankc::runtime::cuda {

/// What a program calls attention with. `element` is the size of an activation in bytes; `deterministic` is
/// the description's.
struct attention_shape {
  int rows, seq, heads, kv_heads, dim;
  std::size_t element;
  bool deterministic;
};

/// Whether cuDNN takes this shape; the runtime's own kernels take the rest.
constexpr bool attention_by_cudnn(const attention_shape& s) {
  return s.element == 2 && s.dim % 8 == 0 && s.dim <= 128 && s.seq % 128 == 0;
}

/// The part of a gradient that cuDNN works out at once: `rows` rows of the query heads of `kv_heads`. Its
/// deterministic engine writes down all scores of a part, so that parts are kept to 1 GiB where one key
/// head of one row is no more than that.
struct attention_part {
  int rows, kv_heads;
};
constexpr attention_part attention_grad_part(const attention_shape& s) {
  if (!s.deterministic) return {s.rows, s.kv_heads};
  const std::size_t head = std::size_t{2} * s.seq * s.seq * (s.heads / s.kv_heads),
                    most = std::size_t{1} << 30;
  const auto largest = [&](int count, std::size_t each) {
    int part = count;
    while (part > 1 && (count % part != 0 || part * each > most)) --part;
    return part;
  };
  const int heads = largest(s.kv_heads, head);
  return {heads == s.kv_heads ? largest(s.rows, heads * head) : 1, heads};
}

/// The gradient's sum of dout o per row, in f32.
constexpr std::size_t attention_delta_bytes(const attention_shape& s) {
  return (std::size_t{4} * s.rows * s.heads * s.seq + 255) / 256 * 256;
}

/// What cuDNN asks for: dq added up in f32 or, deterministic, the scores' gradients in bf16; and dk and dv
/// per query head in bf16, where several share a key head.
/// Source: the plans of cuDNN 9.14 and 9.19 for compute capability 9.0, which need this to the byte.
constexpr std::size_t attention_grad_workspace(const attention_shape& s) {
  const attention_part part = attention_grad_part(s);
  const std::size_t heads = std::size_t{1} * part.rows * part.kv_heads * (s.heads / s.kv_heads),
                    tokens = heads * s.seq;
  return 256 + (s.deterministic ? 2 * tokens * s.seq : 4 * tokens * s.dim) +
         (s.heads != s.kv_heads ? 4 * tokens * s.dim : 0);
}

/// Whether rankc's own kernels for compute capability 9.0 go before cuDNN's for this shape.
constexpr bool attention_by_tiles(const attention_shape& s) {
  return s.element == 2 && s.dim == 64 && s.seq % 64 == 0;
}
/// The same for its gradient. They make the weights twice, for dq and for dk and dv: of longer sequences
/// cuDNN's are faster, unless they are to be deterministic.
constexpr bool attention_grad_by_tiles(const attention_shape& s) {
  return attention_by_tiles(s) && (s.seq <= 8192 || s.deterministic);
}
/// What these ask for: two f32 numbers of each query.
constexpr std::size_t attention_statistics_bytes(const attention_shape& s) {
  return 2 * attention_delta_bytes(s);
}

constexpr std::size_t attention_scratch(const attention_shape&) { return 256; }
constexpr std::size_t attention_grad_scratch(const attention_shape& s) {
  const std::size_t others =
      attention_delta_bytes(s) + (attention_by_cudnn(s) ? attention_grad_workspace(s) : 0);
  return attention_grad_by_tiles(s) ? std::max(others, attention_statistics_bytes(s)) : others;
}

// Of a rank's chunks of sequences, whose shape has its tokens of each for `seq`: a block's output, or
// gradient of queries, and its statistics lie beside what they are merged into.
constexpr std::size_t chunk_output_bytes(int rows, int seq, int heads, int dim) {
  return (std::size_t{2} * rows * seq * heads * dim + 255) / 256 * 256;
}
constexpr std::size_t chunk_statistics_bytes(int rows, int seq, int heads) {
  return (std::size_t{4} * rows * seq * heads + 255) / 256 * 256;
}
constexpr bool chunks_by_cudnn(const attention_shape& s) { return attention_by_cudnn(s) && s.seq % 256 == 0; }
constexpr std::size_t chunk_attention_scratch(const attention_shape& s) {
  return attention_scratch(s) + (chunks_by_cudnn(s) ? chunk_output_bytes(s.rows, s.seq, s.heads, s.dim) +
                                                          chunk_statistics_bytes(s.rows, s.seq, s.heads)
                                                    : 0);
}
constexpr std::size_t chunk_attention_grad_scratch(const attention_shape& s) {
  return chunks_by_cudnn(s) ? chunk_output_bytes(s.rows, s.seq, s.heads, s.dim) + attention_grad_scratch(s)
                            : attention_delta_bytes(s);
}

}  // namespace rankc::runtime::cuda
