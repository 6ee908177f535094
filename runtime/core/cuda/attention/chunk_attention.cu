// SPDX-License-Identifier: Apache-2.0
// Attention of a rank's two chunks of each sequence to gathered keys. It runs in blocks that are causal or
// see all of their keys:
// - the rank's own keys: causal, because the chunks are in the order of their positions
// - the keys of an earlier rank: all queries see the first half of the keys
// - the keys of a later rank: the second half of the queries sees all keys
// Outputs are merged by their log-sum-exp, in the order of ranks.
// Source: zig-zag ring attention (Zhu 2024), in Megatron-LM and ring-flash-attention.
#include "attention_merge.cuh"

#include <rankc/contract/attention_scratch.hpp>

namespace rankc::runtime::cuda {
namespace {

/// dq += more, for the queries `q`.
template <int N>
__global__ void __launch_bounds__(block) add_queries(bf16* dq, const bf16* more, queries q) {
  const int width = q.heads * q.dim, packs = width / N;
  const std::size_t item = std::size_t{blockIdx.x} * block + threadIdx.x, i = item / packs;
  if (i >= q.some()) return;
  const std::size_t at = q.token(i) * width + item % packs * N;
  float a[N], b[N];
  unpack(a, load<bf16, N>(dq + at));
  unpack(b, load<bf16, N>(more + at));
  for (int n = 0; n < N; ++n) a[n] += b[n];
  store(dq + at, packed<bf16>(a));
}

struct blocks : attention_blocks {
  using attention_blocks::attention_blocks;
  /// True if fused kernels compute all blocks. Scratch is planned only for the shapes of chunks_by_cudnn.
  bool are_fused(const lane& on, bool gradient, const runtime::chunks& has) const {
    return chunks_by_cudnn(shape_of(on, own)) && has_fused_attention(on, gradient, {own}) &&
           (has.rank == 0 || has_fused_attention(on, gradient, {before})) &&
           (has.rank == has.ranks - 1 || has_fused_attention(on, gradient, {behind}));
  }
};

/// True if the rows of queries and keys are contiguous. Blocks are addressed as if they were.
bool is_dense(const attention_sizes& s) {
  return s.q_stride == s.heads * s.dim && s.k_stride == s.kv_heads * s.dim;
}

/// Byte offsets of the second half of the queries and of its statistics, and the bytes between the keys of
/// two ranks.
struct places {
  std::size_t half_queries, half_statistics, keys_of_rank;
  explicit places(const attention_sizes& s)
      : half_queries(static_cast<std::size_t>(s.seq / 2) * s.heads * s.dim * sizeof(bf16)),
        half_statistics(static_cast<std::size_t>(s.seq / 2) * sizeof(float)),
        keys_of_rank(static_cast<std::size_t>(s.rows) * s.seq * s.k_stride * sizeof(bf16)) {}
};

}  // namespace

bool chunk_attention_fused(const lane& on, at o, at lse, at scratch, at q, at k, at v,
                           const runtime::chunks& has, const attention_sizes& s) {
  const blocks of(s);
  if (!is_dense(s) || !is_aligned(on, {o, lse, q, k, v}) || !of.are_fused(on, false, has)) return false;
  const places to(s);
  const at more = scratch, lse_more = more + chunk_output_bytes(s.rows, s.seq, s.heads, s.dim),
           work = lse_more + chunk_statistics_bytes(s.rows, s.seq, s.heads);
  const auto keys = [&](at all, int rank) { return all + static_cast<std::size_t>(rank) * to.keys_of_rank; };
  attention_fused(on, o, lse, work, q, keys(k, has.rank), keys(v, has.rank), of.own);
  for (int rank = 0; rank < has.ranks; ++rank) {
    if (rank == has.rank) continue;
    const bool behind = rank > has.rank;
    const std::size_t from = behind ? to.half_queries : 0, statistic = behind ? to.half_statistics : 0;
    attention_fused(on, more + from, lse_more + statistic, work, q + from, keys(k, rank), keys(v, rank),
                    behind ? of.behind : of.before);
    merge(on, on.at<bf16>(o), on.at<float>(lse), on.at<bf16>(o), on.at<float>(lse), on.at<bf16>(more),
          on.at<float>(lse_more), queries{s.rows, s.seq, behind ? s.seq / 2 : 0, s.heads, s.dim});
  }
  return true;
}

bool chunk_attention_grad_fused(const lane& on, at dq, at dk, at dv, at scratch, at dout, at q, at k, at v,
                                at o, at lse, const runtime::chunks& has, const attention_sizes& s) {
  const blocks of(s);
  if (!is_dense(s) || !is_aligned(on, {dq, dk, dv, scratch, dout, q, k, v, o, lse}) ||
      !of.are_fused(on, true, has))
    return false;
  const places to(s);
  const at more = scratch, work = more + chunk_output_bytes(s.rows, s.seq, s.heads, s.dim);
  const auto keys = [&](at all, int rank) { return all + static_cast<std::size_t>(rank) * to.keys_of_rank; };
  attention_grad_fused(on, dq, keys(dk, has.rank), keys(dv, has.rank), work, dout, q, keys(k, has.rank),
                       keys(v, has.rank), o, lse, of.own);
  for (int rank = 0; rank < has.ranks; ++rank) {
    if (rank == has.rank) continue;
    const bool behind = rank > has.rank;
    const std::size_t from = behind ? to.half_queries : 0, statistic = behind ? to.half_statistics : 0;
    attention_grad_fused(on, more + from, keys(dk, rank), keys(dv, rank), work, dout + from, q + from,
                         keys(k, rank), keys(v, rank), o + from, lse + statistic,
                         behind ? of.behind : of.before);
    const queries some{s.rows, s.seq, behind ? s.seq / 2 : 0, s.heads, s.dim};
    constexpr int n = wide<bf16>;
    launch(on, "chunk_attention_grad", add_queries<n>, ceil_div(some.some() * s.heads * s.dim, block * n),
           block, 0, on.at<bf16>(dq), on.at<bf16>(more), some);
    if (behind) continue;
    // The rank's queries do not see the second half of these keys. Its gradient is 0.
    const std::size_t row = static_cast<std::size_t>(s.seq) * s.k_stride * sizeof(bf16);
    for (const at d : {keys(dk, rank), keys(dv, rank)})
      check(on,
            cudaMemset2DAsync(on.at<std::byte>(d) + row / 2, row, 0, row / 2,
                              static_cast<std::size_t>(s.rows), on.stream),
            "chunk_attention_grad");
  }
  return true;
}

}  // namespace rankc::runtime::cuda
