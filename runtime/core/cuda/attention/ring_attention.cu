// SPDX-License-Identifier: Apache-2.0
// The steps of ring attention by fused kernels, and the merge of two partial results. Each step is a block
// that is causal or sees all of its keys.
#include "attention_merge.cuh"

#include <algorithm>

namespace rankc::runtime::cuda {
namespace {

/// The result of queries that see no keys: o is 0, and the log-sum-exp is -infinity.
template <class T>
__global__ void __launch_bounds__(block)
    fill_unseen(T* o, float* lse, int rows, int count, int unseen, int heads, int dim) {
  const std::size_t item = std::size_t{blockIdx.x} * block + threadIdx.x,
                    width = static_cast<std::size_t>(heads) * dim;
  const std::size_t i = item / width, column = item % width, row = i / unseen, query = i % unseen;
  if (row >= static_cast<std::size_t>(rows)) return;
  o[(row * count + query) * width + column] = from_float<T>(0.0f);
  if (column < static_cast<std::size_t>(heads)) lse[(row * heads + column) * count + query] = -INFINITY;
}

/// Byte offsets of the second half of the queries, and of its statistics.
struct second_half {
  std::size_t queries, statistics;
  explicit second_half(const attention_sizes& s)
      : queries(static_cast<std::size_t>(s.seq / 2) * s.heads * s.dim * sizeof(bf16)),
        statistics(static_cast<std::size_t>(s.seq / 2) * sizeof(float)) {}
};

/// The sizes of the block that a step computes. `s` are those of all queries and keys.
const attention_sizes& sizes_of(const attention_blocks& of, const runtime::ring_step& sees,
                                const attention_sizes& s) {
  if (sees.causal || !s.is_causal()) return s;
  return sees.first_query > 0 ? of.behind : of.before;
}

void clear_half_rows(const lane& on, at first, std::size_t row_bytes, int rows) {
  check(on,
        cudaMemset2DAsync(on.at<std::byte>(first), row_bytes, 0, row_bytes / 2,
                          static_cast<std::size_t>(rows), on.stream),
        "ring_attention_grad");
}

}  // namespace

bool ring_attention_fused(const lane& on, at o, at lse, at scratch, at q, at k, at v,
                          const runtime::ring_step& sees, const attention_sizes& s) {
  const attention_blocks of(s);
  const bool behind = sees.first_query > 0;
  const attention_sizes& sizes = sizes_of(of, sees, s);
  if (!is_aligned(on, {o, lse, q, k, v}) || !has_fused_attention(on, false, {sizes})) return false;
  const second_half to(s);
  if (!behind) return attention_fused(on, o, lse, scratch, q, k, v, sizes);
  const std::size_t cleared = static_cast<std::size_t>(s.rows) * sees.first_query * s.heads * s.dim;
  launch(on, "ring_attention", fill_unseen<bf16>, ceil_div(cleared, block), block, 0, on.at<bf16>(o),
         on.at<float>(lse), s.rows, s.seq, sees.first_query, s.heads, s.dim);
  return attention_fused(on, o + to.queries, lse + to.statistics, scratch, q + to.queries, k, v, sizes);
}

bool ring_attention_grad_fused(const lane& on, at dq, at dk, at dv, at scratch, at dout, at q, at k, at v,
                               at o, at lse, const runtime::ring_step& sees, const attention_sizes& s) {
  const attention_blocks of(s);
  const bool behind = sees.first_query > 0;
  const attention_sizes& sizes = sizes_of(of, sees, s);
  if (!is_aligned(on, {dq, dk, dv, scratch, dout, q, k, v, o, lse}) ||
      !has_fused_attention(on, true, {sizes}))
    return false;
  const second_half to(s);
  const std::size_t from = behind ? to.queries : 0, statistic = behind ? to.statistics : 0;
  if (behind) clear_half_rows(on, dq, 2 * to.queries, s.rows);
  const std::size_t keys = static_cast<std::size_t>(s.seq) * s.k_stride * sizeof(bf16);
  for (const at d : {dk, dv})
    if (sees.keys < sees.count) clear_half_rows(on, d + keys / 2, keys, s.rows);
  return attention_grad_fused(on, dq + from, dk, dv, scratch, dout + from, q + from, k, v, o + from,
                              lse + statistic, sizes);
}

template <class T>
void merge_attention(const lane& on, at o, at lse, at o_before, at lse_before, at o_more, at lse_more,
                     int rows, int tokens, int heads, int dim) {
  merge(on, on.at<T>(o), on.at<float>(lse), on.at<T>(o_before), on.at<float>(lse_before), on.at<T>(o_more),
        on.at<float>(lse_more), queries{rows, tokens / rows, 0, heads, dim});
}

template void merge_attention<float>(const lane&, at, at, at, at, at, at, int, int, int, int);
template void merge_attention<bf16>(const lane&, at, at, at, at, at, at, int, int, int, int);

}  // namespace rankc::runtime::cuda
