// SPDX-License-Identifier: Apache-2.0
// The scratch that attention needs besides its operands, in bytes. The generator allocates it, and the
// runtime uses no more.
#pragma once
#include <rankc/contract/targets.hpp>
#include <algorithm>
#include <cstddef>

namespace rankc::runtime::cuda {

/// The shape of an attention call. A head of queries or keys has `dim` elements, and a head of values
/// `value_dim`. `element` is the size of an activation in bytes. `deterministic` is set by the program's
/// description.
struct attention_shape {
  int rows, seq, heads, kv_heads, dim, value_dim;
  std::size_t element;
  bool deterministic;
  /// True if heads of keys and of values have one size, as fused kernels need.
  constexpr bool has_equal_heads() const { return value_dim == dim; }
};

/// True if cuDNN can run this shape. If not, the runtime's own kernels run it.
constexpr bool attention_by_cudnn(const attention_shape& s) {
  return s.element == 2 && s.has_equal_heads() && s.dim % 8 == 0 && s.dim <= 128 && s.seq % 128 == 0;
}

/// The part of a gradient that one call of cuDNN computes: `rows` rows of the query heads of `kv_heads` key
/// heads. cuDNN's deterministic engine stores all scores of a part. So a part has at most 1 GiB of scores, or
/// those of one key head of one row if these are more.
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

/// The sums of dout * o that the gradient needs, one per query and head, in f32.
constexpr std::size_t attention_delta_bytes(const attention_shape& s) {
  return (std::size_t{4} * s.rows * s.heads * s.seq + 255) / 256 * 256;
}

/// The workspace of cuDNN's gradient: dq accumulated in f32 or, if deterministic, the gradients of the scores
/// in bf16. If several query heads share a key head, also dk and dv per query head in bf16.
/// Source: the plans of cuDNN 9.14 and 9.19 for compute capability 9.0, which need exactly these bytes.
constexpr std::size_t attention_grad_workspace(const attention_shape& s) {
  const attention_part part = attention_grad_part(s);
  const std::size_t heads = std::size_t{1} * part.rows * part.kv_heads * (s.heads / s.kv_heads),
                    tokens = heads * s.seq;
  return 256 + (s.deterministic ? 2 * tokens * s.seq : 4 * tokens * s.dim) +
         (s.heads != s.kv_heads ? 4 * tokens * s.dim : 0);
}

/// True if rankc's own kernels for compute capability 9.0 run this shape in place of cuDNN's.
constexpr bool attention_by_tiles(const attention_shape& s) {
  return s.element == 2 && s.has_equal_heads() && s.dim == 64 && s.seq % 64 == 0;
}
/// True if those kernels also run the gradient of this shape. They compute the attention weights twice: once
/// for dq, once for dk and dv. So cuDNN is faster on longer sequences, but not if it must be deterministic.
constexpr bool attention_grad_by_tiles(const attention_shape& s) {
  return attention_by_tiles(s) && (s.seq <= 8192 || s.deterministic);
}
/// True if rankc's own kernels for compute capability 9.0 run attention of this shape with documents or
/// windows. `seq` is the length of a rank's chunk.
constexpr bool masked_attention_by_tiles(const attention_shape& s) {
  return s.element == 2 && s.has_equal_heads() && (s.dim == 64 || s.dim == 128) && s.seq % 64 == 0;
}
/// The scratch of the gradient kernels for compute capability 9.0: two f32 numbers per query and head.
constexpr std::size_t attention_statistics_bytes(const attention_shape& s) {
  return 2 * attention_delta_bytes(s);
}

constexpr std::size_t attention_scratch(const attention_shape&) { return 256; }
constexpr std::size_t attention_grad_scratch(const attention_shape& s) {
  const std::size_t others =
      attention_delta_bytes(s) + (attention_by_cudnn(s) ? attention_grad_workspace(s) : 0);
  return masked_attention_by_tiles(s) ? std::max(others, attention_statistics_bytes(s)) : others;
}
/// The scratch of the gradient of attention within documents.
constexpr std::size_t document_attention_grad_scratch(const attention_shape& s) {
  return masked_attention_by_tiles(s) ? attention_statistics_bytes(s) : attention_delta_bytes(s);
}

// Scratch for the sequence chunks of a cp rank. `seq` is the number of the rank's tokens in a sequence. Each
// block's output (or query gradient) and statistics are stored in scratch and then merged into the result.
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
                            : document_attention_grad_scratch(s);
}

}  // namespace rankc::runtime::cuda
