// SPDX-License-Identifier: Apache-2.0
// Attention, forward. A block takes 64 queries of one head and walks over the keys that they see, in tiles of
// 64. It keeps the running maximum and sum of each row's softmax, and writes only the output and the
// log-sum-exp. These kernels serve f32, and the calls that the fused kernels do not take.
// Source: Milakov and Gimelshein 2018 (online softmax); FlashAttention (Dao et al. 2022).
#include <rankc/runtime/cuda/kernels.hpp>

#include "attention.cuh"
#include "attention_hopper.hpp"
#include "attention_plans.hpp"
#include "../device/documents.cuh"

#include <algorithm>
#include <string>
#include <type_traits>

namespace rankc::runtime::cuda {
namespace {

/// Shapes: as of `attention`; grid (tiles of queries, heads, rows), block (16, 16). D is the larger of dim
/// and value_dim, rounded up to 32, 64 or 128.
template <int D, class T, class Order>
__global__ void __launch_bounds__(lanes* lanes)
    attention_forward(T* o, float* lse, const T* q, const T* k, const T* v, attention_sizes s, Order order,
                      score_form by) {
  const int seq = order.queries(), dim = s.dim, value_dim = s.value_dim;
  float* q_tile = dynamic_shared();                 // (tile, D)
  float* k_tile = q_tile + tile * tile_stride<D>;   // (tile, D)
  float* v_tile = k_tile + tile * tile_stride<D>;   // (tile, D)
  float* weights = v_tile + tile * tile_stride<D>;  // (tile, tile)

  // The last tile sees the most keys. It runs first, so that all blocks end at about the same time.
  const int begin = (gridDim.x - 1 - blockIdx.x) * tile;
  const int head = blockIdx.y, row = blockIdx.z, kv_head = head / (s.heads / s.kv_heads);
  const auto k_view = key_view(k, order.row_of_keys(row), kv_head, s);
  const auto v_view = value_view(v, order.row_of_keys(row), kv_head, s);
  const auto row_of_key = [&](int key) { return order.row_of_key(key, row); };
  const float scale = by.scale_of(dim);

  load_tile<D, T>(q_tile, query_view(q, row, head, s), begin, seq, dim);
  float sum[rows_each][D / lanes] = {}, top[rows_each], total[rows_each] = {};
  for (int i = 0; i < rows_each; ++i) top[i] = -INFINITY;

  const int last = by.last_key(order, (begin + tile < seq ? begin + tile : seq) - 1);
  for (int keys = by.first_key(order, begin, row) / tile * tile; keys <= last; keys += tile) {
    __syncthreads();  // all threads have read the previous tiles
    load_tile<D, T>(k_tile, k_view, keys, order.keys(), dim, row_of_key);
    load_tile<D, T>(v_tile, v_view, keys, order.keys(), value_dim, row_of_key);
    __syncthreads();
    float score[rows_each][rows_each];
    products<D>(score, q_tile, k_tile);
    for (int i = 0; i < rows_each; ++i) {
      const int query = begin + threadIdx.y * rows_each + i, end = by.last_key(order, query),
                first = by.first_key(order, query, row);
      float most = top[i];
      for (int j = 0; j < rows_each; ++j) {
        const int key = keys + threadIdx.x + lanes * j;
        score[i][j] = key >= first && key <= end ? by.capped(score[i][j] * scale) : -INFINITY;
        most = fmaxf(most, score[i][j]);
      }
      most = group_max(most);
      const float from = most == -INFINITY ? 0.0f : most;  // a row may have seen no key yet
      const float shrink = expf(top[i] - from);
      float part = 0.0f;
      for (int j = 0; j < rows_each; ++j) part += score[i][j] = expf(score[i][j] - from);
      total[i] = total[i] * shrink + group_sum(part);
      top[i] = most;
      for (int j = 0; j < D / lanes; ++j) sum[i][j] *= shrink;
    }
    hand_over(weights, score);
    accumulate<D>(sum, weights, v_tile);
  }

  float inverse[rows_each];
  for (int i = 0; i < rows_each; ++i) {
    inverse[i] = total[i] > 0.0f ? 1.0f / total[i] : 0.0f;  // 0: the row sees no key
    const int query = begin + threadIdx.y * rows_each + i;
    if (threadIdx.x == 0 && query < seq)
      lse[(static_cast<std::size_t>(row) * s.heads + head) * seq + query] = top[i] + logf(total[i]);
  }
  store_tile<D>(output_view(o, row, head, s), sum, inverse, begin, seq, value_dim);
}

template <int D, class T, class Order>
void run(const lane& on, T* o, float* lse, const T* q, const T* k, const T* v, const attention_sizes& s,
         const Order& order, const score_form& by) {
  constexpr std::size_t shared = sizeof(float) * (3 * tile * tile_stride<D> + tile * weight_stride);
  launch(on, "attention", attention_forward<D, T, Order>, dim3(ceil_div(s.seq, tile), s.heads, s.rows),
         dim3(lanes, lanes), shared, o, lse, q, k, v, s, order, by);
}

/// Runs the kernel for the size of a head.
template <class T, class Order>
void run(const lane& on, at o, at lse, at q, at k, at v, const attention_sizes& s, const Order& order,
         const attention_setting& by) {
  const auto with = [&](auto* run_d) {
    run_d(on, on.at<T>(o), on.at<float>(lse), on.at<T>(q), on.at<T>(k), on.at<T>(v), s, order,
          score_form(by));
  };
  const int largest = std::max(s.dim, s.value_dim);
  if (largest <= 32) with(run<32, T, Order>);
  else if (largest <= 64) with(run<64, T, Order>);
  else if (largest <= 128) with(run<128, T, Order>);
  else refuse_head_dim(on, "attention", largest);
}

}  // namespace

bool attention_fused(const lane& on, at o, at lse, at scratch, at q, at k, at v, const attention_sizes& s) {
  return attention_hopper(on, o, lse, q, k, v, s) || attention_cudnn(on, o, lse, scratch, q, k, v, s);
}

bool has_fused_attention(const lane& on, bool gradient, std::initializer_list<attention_sizes> all) {
  return std::all_of(all.begin(), all.end(), [&](const attention_sizes& s) {
    return may_be_fused(s) && (is_for_hopper(on, gradient, s) || has_attention_plan(on, gradient, s));
  });
}

template <class T>
void attention(const lane& on, at o, at lse, at scratch, at q, at k, at v, int rows, int seq, int heads,
               int kv_heads, int dim, int value_dim, int q_stride, int k_stride, int v_stride,
               const attention_setting& by) {
  const attention_sizes s{rows,
                          seq,
                          heads,
                          kv_heads,
                          dim,
                          value_dim,
                          q_stride,
                          k_stride,
                          v_stride,
                          heads * value_dim,
                          keys_of(seq, by)};
  if constexpr (std::is_same_v<T, bf16>)
    if (by.has_plain_scores()
            ? attention_fused(on, o, lse, scratch, q, k, v, s)
            : masked_attention_hopper(on, o, lse, q, k, v, {nullptr, {seq}, {seq}, true}, s, by))
      return;
  run<T>(on, o, lse, q, k, v, s, whole_sequences{seq}, by);
}

template <class T>
void chunk_attention(const lane& on, at o, at lse, at scratch, at q, at k, at v, int rows, int seq, int heads,
                     int kv_heads, int dim, int value_dim, int q_stride, int k_stride, int v_stride,
                     int ranks, int first, const attention_setting& by) {
  const runtime::chunks has{seq, ranks, first / (rows * (seq / ranks))};
  const attention_sizes s{rows,      has.count(), heads,    kv_heads, dim,
                          value_dim, q_stride,    k_stride, v_stride, heads * value_dim};
  if constexpr (std::is_same_v<T, bf16>)
    if (by.is_plain() ? chunk_attention_fused(on, o, lse, scratch, q, k, v, has, s)
                      : masked_attention_hopper(on, o, lse, q, k, v, {nullptr, has, has, true}, s, by))
      return;
  run<T>(on, o, lse, q, k, v, s, chunks_of_sequences{has, rows}, by);
}

template <class T>
void ring_attention(const lane& on, at o, at lse, at scratch, at q, at k, at v, int rows, int seq, int heads,
                    int kv_heads, int dim, int value_dim, int ring, double step, int first,
                    const attention_setting& by) {
  const runtime::chunks has{seq, ring, first / (rows * (seq / ring))};
  const step_of_ring order{{has, static_cast<int>(step), by.causal}, has};
  const attention_sizes s =
      ring_sizes(rows, order.sees.count, heads, kv_heads, dim, value_dim, keys_of(order.sees.count, by));
  if constexpr (std::is_same_v<T, bf16>)
    if (by.has_plain_scores()
            ? ring_attention_fused(on, o, lse, scratch, q, k, v, order.sees, s)
            : masked_attention_hopper(on, o, lse, q, k, v, {nullptr, has, order.sees.of_keys, false}, s, by))
      return;
  run<T>(on, o, lse, q, k, v, s, order, by);
}

template <class T>
void document_attention(const lane& on, at o, at lse, at, at q, at k, at v, at starts, int rows, int seq,
                        int heads, int kv_heads, int dim, int value_dim, int q_stride, int k_stride,
                        int v_stride, const attention_setting& by) {
  const attention_sizes s{rows,      seq,      heads,    kv_heads, dim,
                          value_dim, q_stride, k_stride, v_stride, heads * value_dim};
  const auto* from = on.at<std::int32_t>(starts);
  if constexpr (std::is_same_v<T, bf16>)
    if (masked_attention_hopper(on, o, lse, q, k, v, {from, {seq}, {seq}, true}, s, by)) return;
  run<T>(on, o, lse, q, k, v, s, within_documents<whole_sequences>{{seq}, from, {seq}}, by);
}

template <class T>
void document_chunk_attention(const lane& on, at o, at lse, at, at q, at k, at v, at starts, int rows,
                              int seq, int heads, int kv_heads, int dim, int value_dim, int q_stride,
                              int k_stride, int v_stride, int ranks, int first, const attention_setting& by) {
  const runtime::chunks has{seq, ranks, first / (rows * (seq / ranks))};
  const attention_sizes s{rows,      has.count(), heads,    kv_heads, dim,
                          value_dim, q_stride,    k_stride, v_stride, heads * value_dim};
  const auto* from = on.at<std::int32_t>(starts);
  if constexpr (std::is_same_v<T, bf16>)
    if (masked_attention_hopper(on, o, lse, q, k, v, {from, has, has, true}, s, by)) return;
  run<T>(on, o, lse, q, k, v, s, within_documents<chunks_of_sequences>{{has, rows}, from, has}, by);
}

template <class T>
void document_ring_attention(const lane& on, at o, at lse, at, at q, at k, at v, at starts, int rows, int seq,
                             int heads, int kv_heads, int dim, int value_dim, int ring, double step,
                             int first, const attention_setting& by) {
  const runtime::chunks has{seq, ring, first / (rows * (seq / ring))};
  const runtime::ring_step sees{has, static_cast<int>(step)};
  const attention_sizes s = ring_sizes(rows, sees.count, heads, kv_heads, dim, value_dim, 0);
  const auto* from = on.at<std::int32_t>(starts);
  if constexpr (std::is_same_v<T, bf16>)
    if (masked_attention_hopper(on, o, lse, q, k, v, {from, has, sees.of_keys, false}, s, by)) return;
  run<T>(on, o, lse, q, k, v, s, within_documents<step_of_ring>{{sees, has}, from, has}, by);
}

template decltype(attention<float>) attention<float>;
template decltype(attention<bf16>) attention<bf16>;
template decltype(document_attention<float>) document_attention<float>;
template decltype(document_attention<bf16>) document_attention<bf16>;
template decltype(chunk_attention<float>) chunk_attention<float>;
template decltype(chunk_attention<bf16>) chunk_attention<bf16>;
template decltype(document_chunk_attention<float>) document_chunk_attention<float>;
template decltype(document_chunk_attention<bf16>) document_chunk_attention<bf16>;
template decltype(ring_attention<float>) ring_attention<float>;
template decltype(ring_attention<bf16>) ring_attention<bf16>;
template decltype(document_ring_attention<float>) document_ring_attention<float>;
template decltype(document_ring_attention<bf16>) document_ring_attention<bf16>;

}  // namespace rankc::runtime::cuda
