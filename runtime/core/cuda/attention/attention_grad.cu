// SPDX-License-Identifier: Apache-2.0
// The gradient of attention. The weights are recomputed from the log-sum-exp. There are two kernels, so that
// every sum has one owner and a fixed order. One has a block per query tile, for dq. The other has a block
// per key tile, for dk and dv, which walks over the query heads that share its key head.
// Source: FlashAttention (Dao et al. 2022), algorithm 4; delta = sum of dout o per row.
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

/// dq = scale * sum over keys of ds k, with p = exp(score - lse), ds = p (dout v - delta). It also stores
/// delta for the other kernel.
/// Shapes: as of attention_grad; delta f32 (rows, heads, queries); grid (tiles of queries, heads, rows),
/// block (16, 16).
template <int D, class T, class Order>
__global__ void __launch_bounds__(lanes* lanes)
    attention_dq(T* dq, float* delta, const T* dout, const T* q, const T* k, const T* v, const T* o,
                 const float* lse, attention_sizes z, Order order, score_form by) {
  const int seq = order.queries(), heads = z.heads, dim = z.dim, value_dim = z.value_dim;
  float* q_tile = dynamic_shared();                   // (tile, D)
  float* dout_tile = q_tile + tile * tile_stride<D>;  // (tile, D)
  float* k_tile = dout_tile + tile * tile_stride<D>;  // (tile, D)
  float* v_tile = k_tile + tile * tile_stride<D>;     // (tile, D)
  float* weights = v_tile + tile * tile_stride<D>;    // (tile, tile)

  const int begin = (gridDim.x - 1 - blockIdx.x) * tile;
  const int head = blockIdx.y, row = blockIdx.z, kv_head = head / (z.heads / z.kv_heads);
  const auto k_view = key_view(k, order.row_of_keys(row), kv_head, z);
  const auto v_view = value_view(v, order.row_of_keys(row), kv_head, z);
  const auto row_of_key = [&](int key) { return order.row_of_key(key, row); };
  const auto o_view = output_view(o, row, head, z);
  const std::size_t statistics = (static_cast<std::size_t>(row) * heads + head) * seq;
  const float scale = by.scale_of(dim);

  load_tile<D, T>(q_tile, query_view(q, row, head, z), begin, seq, dim);
  load_tile<D, T>(dout_tile, output_view(dout, row, head, z), begin, seq, value_dim);
  __syncthreads();

  float row_lse[rows_each], row_delta[rows_each];
  for (int i = 0; i < rows_each; ++i) {
    const int t = threadIdx.y * rows_each + i, query = begin + t;
    float part = 0.0f;
    if (query < seq)
      for (int d = threadIdx.x; d < value_dim; d += lanes)
        part += dout_tile[t * tile_stride<D> + d] * to_float(o_view.first[query * o_view.stride + d]);
    row_delta[i] = group_sum(part);
    row_lse[i] = query < seq ? lse[statistics + query] : 0.0f;
    if (threadIdx.x == 0 && query < seq) delta[statistics + query] = row_delta[i];
  }

  float sum[rows_each][D / lanes] = {};
  const int last = by.last_key(order, (begin + tile < seq ? begin + tile : seq) - 1);
  for (int keys = by.first_key(order, begin, row) / tile * tile; keys <= last; keys += tile) {
    __syncthreads();
    load_tile<D, T>(k_tile, k_view, keys, order.keys(), dim, row_of_key);
    load_tile<D, T>(v_tile, v_view, keys, order.keys(), value_dim, row_of_key);
    __syncthreads();
    float s[rows_each][rows_each], dp[rows_each][rows_each];
    products<D>(s, q_tile, k_tile);
    products<D>(dp, dout_tile, v_tile);
    for (int i = 0; i < rows_each; ++i)
      for (int j = 0; j < rows_each; ++j) {
        const int query = begin + threadIdx.y * rows_each + i, key = keys + threadIdx.x + lanes * j;
        const bool seen =
            key >= by.first_key(order, query, row) && key <= by.last_key(order, query) && query < seq;
        const float score = by.capped(s[i][j] * scale), p = seen ? expf(score - row_lse[i]) : 0.0f;
        s[i][j] = p * (dp[i][j] - row_delta[i]) * by.slope(score);
      }
    hand_over(weights, s);
    accumulate<D>(sum, weights, k_tile);
  }
  const float factor[rows_each] = {scale, scale, scale, scale};
  store_tile<D>(query_view(dq, row, head, z), sum, factor, begin, seq, dim);
}

/// dv = sum over queries of p dout, dk = scale * sum over queries of ds q, over the query heads of the group
/// in order. Products are transposed compared with the other kernel: their rows are keys, and their columns
/// are queries.
/// Shapes: dk, k (rows * seq, kv_heads, dim); dv, v (rows * seq, kv_heads, value_dim); others as of
/// attention_dq; grid (tiles of keys, kv_heads, rows).
template <int D, class T, class Order>
__global__ void __launch_bounds__(lanes* lanes)
    attention_dkv(T* dk, T* dv, const T* dout, const T* q, const T* k, const T* v, const float* lse,
                  const float* delta, attention_sizes z, Order order, score_form by) {
  const int seq = order.queries(), heads = z.heads, dim = z.dim, value_dim = z.value_dim;
  float* k_tile = dynamic_shared();                    // (tile, D)
  float* v_tile = k_tile + tile * tile_stride<D>;      // (tile, D)
  float* q_tile = v_tile + tile * tile_stride<D>;      // (tile, D)
  float* dout_tile = q_tile + tile * tile_stride<D>;   // (tile, D)
  float* weights = dout_tile + tile * tile_stride<D>;  // (tile, tile)

  // The first tile of keys is seen by the most queries, so it runs first.
  const int begin = blockIdx.x * tile;
  const int kv_head = blockIdx.y, row = blockIdx.z, group = z.heads / z.kv_heads;
  const float scale = by.scale_of(dim);
  const auto row_of_key = [&](int key) { return order.row_of_key(key, row); };
  const int keys_of = order.row_of_keys(row);
  load_tile<D, T>(k_tile, key_view(k, keys_of, kv_head, z), begin, order.keys(), dim, row_of_key);
  load_tile<D, T>(v_tile, value_view(v, keys_of, kv_head, z), begin, order.keys(), value_dim, row_of_key);

  float sum_k[rows_each][D / lanes] = {}, sum_v[rows_each][D / lanes] = {};
  for (int head = kv_head * group; head < (kv_head + 1) * group; ++head) {
    const auto q_view = query_view(q, row, head, z);
    const auto dout_view = output_view(dout, row, head, z);
    const std::size_t statistics = (static_cast<std::size_t>(row) * heads + head) * seq;
    for (int queries = by.first_query(order, begin) / tile * tile; queries < seq; queries += tile) {
      // These queries and all later ones see only keys after the tile.
      if (by.window > 0 && by.first_key(order, queries, row) >= begin + tile) break;
      __syncthreads();
      load_tile<D, T>(q_tile, q_view, queries, seq, dim);
      load_tile<D, T>(dout_tile, dout_view, queries, seq, value_dim);
      __syncthreads();
      float s[rows_each][rows_each], ds[rows_each][rows_each];
      products<D>(s, k_tile, q_tile);
      products<D>(ds, v_tile, dout_tile);
      for (int j = 0; j < rows_each; ++j) {
        const int query = queries + threadIdx.x + lanes * j;
        const float column_lse = query < seq ? lse[statistics + query] : 0.0f;
        const float column_delta = query < seq ? delta[statistics + query] : 0.0f;
        const int first = by.first_key(order, query, row);
        for (int i = 0; i < rows_each; ++i) {
          const int key = begin + threadIdx.y * rows_each + i;
          const bool seen = key >= first && key <= by.last_key(order, query) && query < seq;
          const float score = by.capped(s[i][j] * scale);
          s[i][j] = seen ? expf(score - column_lse) : 0.0f;
          ds[i][j] = s[i][j] * (ds[i][j] - column_delta) * by.slope(score);
        }
      }
      hand_over(weights, s);
      accumulate<D>(sum_v, weights, dout_tile);
      hand_over(weights, ds);
      accumulate<D>(sum_k, weights, q_tile);
    }
  }
  const float ones[rows_each] = {1.0f, 1.0f, 1.0f, 1.0f}, factor[rows_each] = {scale, scale, scale, scale};
  store_tile<D>(value_view(dv, keys_of, kv_head, z), sum_v, ones, begin, order.keys(), value_dim, row_of_key);
  store_tile<D>(key_view(dk, keys_of, kv_head, z), sum_k, factor, begin, order.keys(), dim, row_of_key);
}

template <int D, class T, class Order>
void run(const lane& on, T* dq, T* dk, T* dv, float* delta, const T* dout, const T* q, const T* k, const T* v,
         const T* o, const float* lse, const attention_sizes& s, int keys, const Order& order,
         const score_form& by) {
  constexpr std::size_t shared = sizeof(float) * (4 * tile * tile_stride<D> + tile * weight_stride);
  launch(on, "attention_grad", attention_dq<D, T, Order>, dim3(ceil_div(s.seq, tile), s.heads, s.rows),
         dim3(lanes, lanes), shared, dq, delta, dout, q, k, v, o, lse, s, order, by);
  launch(on, "attention_grad", attention_dkv<D, T, Order>, dim3(ceil_div(keys, tile), s.kv_heads, s.rows),
         dim3(lanes, lanes), shared, dk, dv, dout, q, k, v, lse, delta, s, order, by);
}

/// Runs the kernels for the size of a head.
template <class T, class Order>
void run(const lane& on, at dq, at dk, at dv, at scratch, at dout, at q, at k, at v, at o, at lse,
         const attention_sizes& s, int keys, const Order& order, const attention_setting& by) {
  const auto with = [&](auto* run_d) {
    run_d(on, on.at<T>(dq), on.at<T>(dk), on.at<T>(dv), on.at<float>(scratch), on.at<T>(dout), on.at<T>(q),
          on.at<T>(k), on.at<T>(v), on.at<T>(o), on.at<float>(lse), s, keys, order, score_form(by));
  };
  const int largest = std::max(s.dim, s.value_dim);
  if (largest <= 32) with(run<32, T, Order>);
  else if (largest <= 64) with(run<64, T, Order>);
  else if (largest <= 128) with(run<128, T, Order>);
  else refuse_head_dim(on, "attention_grad", largest);
}

}  // namespace

bool attention_grad_fused(const lane& on, at dq, at dk, at dv, at scratch, at dout, at q, at k, at v, at o,
                          at lse, const attention_sizes& s) {
  return attention_grad_hopper(on, dq, dk, dv, scratch, dout, q, k, v, o, lse, s) ||
         attention_grad_cudnn(on, dq, dk, dv, scratch, dout, q, k, v, o, lse, s);
}

template <class T>
void attention_grad(const lane& on, at dq, at dk, at dv, at scratch, at dout, at q, at k, at v, at o, at lse,
                    int rows, int seq, int heads, int kv_heads, int dim, int value_dim, int q_stride,
                    int k_stride, int v_stride, const attention_setting& by) {
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
    if (by.has_plain_scores() ? attention_grad_fused(on, dq, dk, dv, scratch, dout, q, k, v, o, lse, s)
                              : masked_attention_grad_hopper(on, dq, dk, dv, scratch, dout, q, k, v, o, lse,
                                                             {nullptr, {seq}, {seq}, true}, s, by))
      return;
  run<T>(on, dq, dk, dv, scratch, dout, q, k, v, o, lse, s, seq, whole_sequences{seq}, by);
}

template <class T>
void chunk_attention_grad(const lane& on, at dq, at dk, at dv, at scratch, at dout, at q, at k, at v, at o,
                          at lse, int rows, int seq, int heads, int kv_heads, int dim, int value_dim,
                          int q_stride, int k_stride, int v_stride, int ranks, int first,
                          const attention_setting& by) {
  const runtime::chunks has{seq, ranks, first / (rows * (seq / ranks))};
  const attention_sizes s{rows,      has.count(), heads,    kv_heads, dim,
                          value_dim, q_stride,    k_stride, v_stride, heads * value_dim};
  if constexpr (std::is_same_v<T, bf16>)
    if (by.is_plain() ? chunk_attention_grad_fused(on, dq, dk, dv, scratch, dout, q, k, v, o, lse, has, s)
                      : masked_attention_grad_hopper(on, dq, dk, dv, scratch, dout, q, k, v, o, lse,
                                                     {nullptr, has, has, true}, s, by))
      return;
  run<T>(on, dq, dk, dv, scratch, dout, q, k, v, o, lse, s, seq, chunks_of_sequences{has, rows}, by);
}

template <class T>
void ring_attention_grad(const lane& on, at dq, at dk, at dv, at scratch, at dout, at q, at k, at v, at o,
                         at lse, int rows, int seq, int heads, int kv_heads, int dim, int value_dim, int ring,
                         double step, int first, const attention_setting& by) {
  const runtime::chunks has{seq, ring, first / (rows * (seq / ring))};
  const step_of_ring order{{has, static_cast<int>(step), by.causal}, has};
  const attention_sizes s =
      ring_sizes(rows, order.sees.count, heads, kv_heads, dim, value_dim, keys_of(order.sees.count, by));
  if constexpr (std::is_same_v<T, bf16>)
    if (by.has_plain_scores()
            ? ring_attention_grad_fused(on, dq, dk, dv, scratch, dout, q, k, v, o, lse, order.sees, s)
            : masked_attention_grad_hopper(on, dq, dk, dv, scratch, dout, q, k, v, o, lse,
                                           {nullptr, has, order.sees.of_keys, false}, s, by))
      return;
  run<T>(on, dq, dk, dv, scratch, dout, q, k, v, o, lse, s, order.sees.count, order, by);
}

template <class T>
void document_attention_grad(const lane& on, at dq, at dk, at dv, at scratch, at dout, at q, at k, at v, at o,
                             at lse, at starts, int rows, int seq, int heads, int kv_heads, int dim,
                             int value_dim, int q_stride, int k_stride, int v_stride,
                             const attention_setting& by) {
  const attention_sizes s{rows,      seq,      heads,    kv_heads, dim,
                          value_dim, q_stride, k_stride, v_stride, heads * value_dim};
  const auto* from = on.at<std::int32_t>(starts);
  if constexpr (std::is_same_v<T, bf16>)
    if (masked_attention_grad_hopper(on, dq, dk, dv, scratch, dout, q, k, v, o, lse,
                                     {from, {seq}, {seq}, true}, s, by))
      return;
  run<T>(on, dq, dk, dv, scratch, dout, q, k, v, o, lse, s, seq,
         within_documents<whole_sequences>{{seq}, from, {seq}}, by);
}

template <class T>
void document_chunk_attention_grad(const lane& on, at dq, at dk, at dv, at scratch, at dout, at q, at k, at v,
                                   at o, at lse, at starts, int rows, int seq, int heads, int kv_heads,
                                   int dim, int value_dim, int q_stride, int k_stride, int v_stride,
                                   int ranks, int first, const attention_setting& by) {
  const runtime::chunks has{seq, ranks, first / (rows * (seq / ranks))};
  const attention_sizes s{rows,      has.count(), heads,    kv_heads, dim,
                          value_dim, q_stride,    k_stride, v_stride, heads * value_dim};
  const auto* from = on.at<std::int32_t>(starts);
  if constexpr (std::is_same_v<T, bf16>)
    if (masked_attention_grad_hopper(on, dq, dk, dv, scratch, dout, q, k, v, o, lse, {from, has, has, true},
                                     s, by))
      return;
  run<T>(on, dq, dk, dv, scratch, dout, q, k, v, o, lse, s, seq,
         within_documents<chunks_of_sequences>{{has, rows}, from, has}, by);
}

template <class T>
void document_ring_attention_grad(const lane& on, at dq, at dk, at dv, at scratch, at dout, at q, at k, at v,
                                  at o, at lse, at starts, int rows, int seq, int heads, int kv_heads,
                                  int dim, int value_dim, int ring, double step, int first,
                                  const attention_setting& by) {
  const runtime::chunks has{seq, ring, first / (rows * (seq / ring))};
  const runtime::ring_step sees{has, static_cast<int>(step)};
  const attention_sizes s = ring_sizes(rows, sees.count, heads, kv_heads, dim, value_dim, 0);
  const auto* from = on.at<std::int32_t>(starts);
  if constexpr (std::is_same_v<T, bf16>)
    if (masked_attention_grad_hopper(on, dq, dk, dv, scratch, dout, q, k, v, o, lse,
                                     {from, has, sees.of_keys, false}, s, by))
      return;
  run<T>(on, dq, dk, dv, scratch, dout, q, k, v, o, lse, s, sees.count,
         within_documents<step_of_ring>{{sees, has}, from, has}, by);
}

template decltype(attention_grad<float>) attention_grad<float>;
template decltype(attention_grad<bf16>) attention_grad<bf16>;
template decltype(chunk_attention_grad<float>) chunk_attention_grad<float>;
template decltype(chunk_attention_grad<bf16>) chunk_attention_grad<bf16>;
template decltype(ring_attention_grad<float>) ring_attention_grad<float>;
template decltype(ring_attention_grad<bf16>) ring_attention_grad<bf16>;
template decltype(document_attention_grad<float>) document_attention_grad<float>;
template decltype(document_attention_grad<bf16>) document_attention_grad<bf16>;
template decltype(document_chunk_attention_grad<float>) document_chunk_attention_grad<float>;
template decltype(document_chunk_attention_grad<bf16>) document_chunk_attention_grad<bf16>;
template decltype(document_ring_attention_grad<float>) document_ring_attention_grad<float>;
template decltype(document_ring_attention_grad<bf16>) document_ring_attention_grad<bf16>;

}  // namespace rankc::runtime::cuda
