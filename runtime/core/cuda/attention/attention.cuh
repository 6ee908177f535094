// SPDX-License-Identifier: Apache-2.0
// The common parts of attention and its gradient. A block of 16 x 16 threads works on tiles of 64 tokens in
// shared memory. Thread (ty, tx) holds rows 4 ty + i and columns tx + 16 j of every product, in f32. The 16
// threads of a row group are half a warp, so they exchange values without a block-wide barrier.
#pragma once
#include "attention_fused.hpp"
#include "../device/device.cuh"

namespace rankc::runtime::cuda {

inline constexpr int tile = 64;   // tokens of a tile
inline constexpr int lanes = 16;  // threads across, and row groups down
inline constexpr int rows_each = tile / lanes;
inline constexpr int weight_stride = tile + 4;  // row stride of (tile, tile) weights in shared memory

[[noreturn]] inline void refuse_head_dim(const lane& on, const char* name, int dim) {
  fail(on, "RC5108: {}: the head dim is {}; it must be at most 128", name, dim);
}

/// An attention_setting in the form that kernels take. 0: the default.
struct score_form {
  int window;
  float scale, cap;
  bool causal;
  explicit score_form(const attention_setting& s)
      : window(s.window),
        scale(static_cast<float>(s.scale)),
        cap(static_cast<float>(s.softcap)),
        causal(s.causal) {}
  __device__ float scale_of(int dim) const {
    return scale != 0.0f ? scale : 1.0f / sqrtf(static_cast<float>(dim));
  }
  __device__ float capped(float score) const { return cap != 0.0f ? cap * tanhf(score / cap) : score; }
  /// The derivative of a capped score with respect to the score.
  __device__ float slope(float capped) const {
    const float share = cap != 0.0f ? capped / cap : 0.0f;
    return 1.0f - share * share;
  }
  /// The index of the first key that a query sees, in its document and in the window.
  template <class Order>
  __device__ int first_key(const Order& order, int query, int row) const {
    const int first = order.first_key(query, row), before = order.place(query) - window + 1;
    if (window == 0 || before <= 0) return first;
    const int in_window = order.first_from(before);
    return first < in_window ? in_window : first;
  }
  /// The index of the last key that a query sees.
  template <class Order>
  __device__ int last_key(const Order& order, int query) const {
    return causal ? order.position(query) : order.keys() - 1;
  }
  /// The index of the first query that sees a key.
  template <class Order>
  __device__ int first_query(const Order& order, int key) const {
    return causal ? order.first_query(key) : 0;
  }
};

/// Row stride of a (tile, D) matrix in shared memory. The 4 extra elements spread the rows over the banks.
template <int D>
inline constexpr int tile_stride = D + 4;

/// The tokens of one head in (rows * seq, heads, dim): the first token, and the stride from token to token.
template <class T>
struct head_view {
  T* first;
  std::size_t stride;
};
template <class T>
__device__ head_view<T> view_of(T* all, int row, int head, int seq, int dim, int stride) {
  const std::size_t next = static_cast<std::size_t>(stride);
  return {all + static_cast<std::size_t>(row) * seq * next + static_cast<std::size_t>(head) * dim, next};
}
template <class T>
__device__ head_view<T> query_view(T* q, int row, int head, const attention_sizes& s) {
  return view_of(q, row, head, s.seq, s.dim, s.q_stride);
}
template <class T>
__device__ head_view<T> key_view(T* k, int row, int kv_head, const attention_sizes& s) {
  return view_of(k, row, kv_head, s.seq, s.dim, s.k_stride);
}
template <class T>
__device__ head_view<T> value_view(T* v, int row, int kv_head, const attention_sizes& s) {
  return view_of(v, row, kv_head, s.seq, s.value_dim, s.v_stride);
}
template <class T>
__device__ head_view<T> output_view(T* o, int row, int head, const attention_sizes& s) {
  return view_of(o, row, head, s.seq, s.value_dim, s.o_stride);
}

/// The order of queries and keys, in whole sequences one after the other.
///   first_key     the first key that a query sees, without a window.
///   first_from    the first key at or after a position of the sequence.
///   position      the last key that a query sees in causal attention.
///   place         the position of a query in its sequence.
///   first_query   the first query that sees a key in causal attention.
///   row_of_keys   the row whose first key is key 0 in `row_of_key`.
struct whole_sequences {
  int seq;
  __device__ int first_key(int, int) const { return 0; }
  __device__ int first_from(int position) const { return position; }
  __device__ int queries() const { return seq; }
  __device__ int keys() const { return seq; }
  __device__ int position(int query) const { return query; }
  __device__ int place(int query) const { return query; }
  __device__ int first_query(int key) const { return key; }
  __device__ int row_of_keys(int row) const { return row; }
  __device__ int row_of_key(int key, int) const { return key; }
};

/// The order for a rank's chunks of sequences, with gathered keys.
struct chunks_of_sequences {
  runtime::chunks has;
  int rows;
  __device__ int first_key(int, int) const { return 0; }
  __device__ int first_from(int position) const { return position; }
  __device__ int queries() const { return has.count(); }
  __device__ int keys() const { return has.seq; }
  __device__ int position(int query) const { return has.position(query); }
  __device__ int place(int query) const { return has.position(query); }
  __device__ int first_query(int key) const {
    const int n = has.length(), front = has.position(0), back = has.position(n);
    if (key < front + n) return key < front ? 0 : key - front;
    return key < back ? n : n + key - back;
  }
  __device__ int row_of_keys(int) const { return 0; }
  __device__ int row_of_key(int key, int row) const { return has.gathered_row(key, row, rows); }
};

/// The order for a rank's chunks, with the keys of one rank of their ring.
struct step_of_ring {
  runtime::ring_step sees;
  runtime::chunks rank;  // the chunks of the queries
  __device__ int first_key(int, int) const { return 0; }
  __device__ int first_from(int position) const { return sees.of_keys.count_before(position); }
  __device__ int queries() const { return sees.count; }
  __device__ int keys() const { return sees.count; }
  __device__ int position(int query) const { return sees.last_key(query); }
  __device__ int place(int query) const { return rank.position(query); }
  __device__ int first_query(int key) const { return sees.causal ? key : sees.first_query; }
  __device__ int row_of_keys(int row) const { return row; }
  __device__ int row_of_key(int key, int) const { return key; }
};

/// to[t][d] = from[row(begin + t)][d]; 0 from `end` on and beyond dim.
/// Shapes: to (tile, D) with tile_stride.
template <int D, class T, class Row>
__device__ void load_tile(float* to, head_view<const T> from, int begin, int end, int dim, Row row) {
  for (int i = threadIdx.y * lanes + threadIdx.x; i < tile * D; i += lanes * lanes) {
    const int t = i / D, d = i % D;
    const bool inside = begin + t < end && d < dim;
    to[t * tile_stride<D> + d] = inside ? to_float(from.first[row(begin + t) * from.stride + d]) : 0.0f;
  }
}
template <int D, class T>
__device__ void load_tile(float* to, head_view<const T> from, int begin, int end, int dim) {
  load_tile<D, T>(to, from, begin, end, dim, [](int t) { return t; });
}

/// s[i][j] = sum over d of a[4 ty + i][d] b[tx + 16 j][d].
/// Shapes: a, b (tile, D).
template <int D>
__device__ void products(float (&s)[rows_each][rows_each], const float* a, const float* b) {
  for (int i = 0; i < rows_each; ++i)
    for (int j = 0; j < rows_each; ++j) s[i][j] = 0.0f;
  const float* a_rows = a + threadIdx.y * rows_each * tile_stride<D>;
  const float* b_rows = b + threadIdx.x * tile_stride<D>;
#pragma unroll 4
  for (int d = 0; d < D; d += 4) {
    pack<float, 4> left[rows_each], right[rows_each];
    for (int i = 0; i < rows_each; ++i) {
      left[i] = load<float, 4>(a_rows + i * tile_stride<D> + d);
      right[i] = load<float, 4>(b_rows + lanes * i * tile_stride<D> + d);
    }
    for (int i = 0; i < rows_each; ++i)
      for (int j = 0; j < rows_each; ++j)
        for (int n = 0; n < 4; ++n) s[i][j] += left[i].element[n] * right[j].element[n];
  }
}

/// sum[i][j] += sum over t of p[4 ty + i][t] b[t][tx + 16 j].
/// Shapes: p (tile, tile), b (tile, D).
template <int D>
__device__ void accumulate(float (&sum)[rows_each][D / lanes], const float* p, const float* b) {
  const float* p_rows = p + threadIdx.y * rows_each * weight_stride;
#pragma unroll 2
  for (int t = 0; t < tile; t += 4) {
    pack<float, 4> left[rows_each];
    for (int i = 0; i < rows_each; ++i) left[i] = load<float, 4>(p_rows + i * weight_stride + t);
    for (int n = 0; n < 4; ++n)
      for (int j = 0; j < D / lanes; ++j) {
        const float right = b[(t + n) * tile_stride<D> + threadIdx.x + lanes * j];
        for (int i = 0; i < rows_each; ++i) sum[i][j] += left[i].element[n] * right;
      }
  }
}

/// p[4 ty + i][tx + 16 j] = s[i][j], for all threads of the row group.
/// Shapes: p (tile, tile).
__device__ inline void hand_over(float* p, const float (&s)[rows_each][rows_each]) {
  __syncwarp();  // the row group has read the previous contents of p
  for (int i = 0; i < rows_each; ++i)
    for (int j = 0; j < rows_each; ++j)
      p[(threadIdx.y * rows_each + i) * weight_stride + threadIdx.x + lanes * j] = s[i][j];
  __syncwarp();
}

/// to[row(begin + 4 ty + i)][tx + 16 j] = factor[i] * sum[i][j], up to `end` and within dim.
template <int D, class T, class Row>
__device__ void store_tile(head_view<T> to, const float (&sum)[rows_each][D / lanes],
                           const float (&factor)[rows_each], int begin, int end, int dim, Row row) {
  for (int i = 0; i < rows_each; ++i) {
    const int t = begin + threadIdx.y * rows_each + i;
    for (int j = 0; j < D / lanes; ++j) {
      const int d = threadIdx.x + lanes * j;
      if (t < end && d < dim) to.first[row(t) * to.stride + d] = from_float<T>(factor[i] * sum[i][j]);
    }
  }
}
template <int D, class T>
__device__ void store_tile(head_view<T> to, const float (&sum)[rows_each][D / lanes],
                           const float (&factor)[rows_each], int begin, int end, int dim) {
  store_tile<D>(to, sum, factor, begin, end, dim, [](int t) { return t; });
}

/// Sum and maximum over the 16 threads of a row group. Every thread gets the result.
__device__ inline float group_sum(float x) {
  for (int step = lanes / 2; step > 0; step /= 2) x += __shfl_xor_sync(0xffffffffu, x, step);
  return x;
}
__device__ inline float group_max(float x) {
  for (int step = lanes / 2; step > 0; step /= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, step));
  return x;
}

}  // namespace rankc::runtime::cuda
