// SPDX-License-Identifier: Apache-2.0
// The gradient of queries, by tiles of them. Source: FlashAttention (Dao et al. 2022), algorithm 4, with
// queries outside; FlashAttention-3 (Shah et al. 2024) for the roles of warpgroups.
#pragma once
#include "hopper_attention.cuh"

namespace rankc::runtime::cuda::hopper {

/// What a query's weights and their gradients are made with: its log-sum-exp in powers of two, and its sum of
/// dout o.
/// Shapes: f32 (rows, heads, tiles of queries, 64, 2).
struct query_statistics {
  float2* all;
  __device__ float2* of(const attention_call& z, int row, int head, int tile) const {
    return all + (static_cast<std::size_t>(row * z.heads + head) * z.query_tiles + tile) * box_side;
  }
};

/// The statistics of a tile, by a warp, `here` and `there`.
__device__ __forceinline__ void make_statistics(float2* here, float2* there, const bf16* dout, const bf16* o,
                                                const float* lse, int stride) {
  constexpr int at_once = 4, rows_each = 4;  // loads on their way, and rows of each
  const int lane = threadIdx.x % warp_size, row = lane / 8, column = lane % 8 * 8;
  const float lse_of[2]{lse[lane], lse[lane + warp_size]};
  dout += static_cast<std::size_t>(row) * stride + column;
  o += static_cast<std::size_t>(row) * stride + column;
#pragma unroll
  for (int first = 0; first < box_side; first += at_once * rows_each) {
    pack<bf16, 8> a[at_once], b[at_once];
#pragma unroll
    for (int n = 0; n < at_once; ++n) {
      a[n] = load<bf16, 8>(dout + static_cast<std::size_t>(first + n * rows_each) * stride);
      b[n] = load<bf16, 8>(o + static_cast<std::size_t>(first + n * rows_each) * stride);
    }
    __syncwarp();  // all are on their way
#pragma unroll
    for (int n = 0; n < at_once; ++n) {
      const int r = first + n * rows_each + row;
      float sum = 0.0f;
#pragma unroll
      for (int i = 0; i < 8; ++i) sum += to_float(a[n].element[i]) * to_float(b[n].element[i]);
#pragma unroll
      for (int step = 4; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
      const float l = __shfl_sync(0xffffffffu, lse_of[(first + n * rows_each) / warp_size], r % warp_size);
      if (lane % 8 == 0) here[r] = there[r] = make_float2(log2_e * l, sum);
    }
  }
}

/// dq = scale * sum over keys of ds k, with p = exp(score - lse), ds = p (dout v - delta); and the
/// statistics.
/// Shapes: dq, dout, o (tokens, heads, 64) with their strides; lse (rows, heads, queries_apart).
struct queries_gradient {
  using block = attention_block<3, 2, 4, 3 * items_ahead>;
  static constexpr int fillers = 1 + block::groups, registers = 152, others_registers = 56;
  attention_call z;
  bf16* dq;
  const bf16 *dout, *o;
  const float* lse;
  query_statistics statistics;
  int dq_stride, o_stride;
  attention_walk items{block::groups, z.rows, z.heads, z.query_tiles, z.causal, true};

  /// By a warp, for a warpgroup.
  template <class Memory, class Items>
  __device__ void write_statistics(const Memory& memory, Items all, int group) const {
    attention_walk walk = items;
    for (attention_item x; walk.next(x); all.advance()) {
      const int tile = x.tile + group;
      all.wait_until_empty();
      if (tile < z.query_tiles) {
        const std::size_t first =
            static_cast<std::size_t>(z.query_row(x.row, tile)) * o_stride + x.head * head_dim;
        make_statistics(memory.line(all.number() * block::groups + group),
                        statistics.of(z, x.row, x.head, tile), dout + first, o + first,
                        lse + z.lse_of(x, tile), o_stride);
      }
      __syncwarp();
      if (first_of_warp()) arrive(all.full());
    }
  }

  /// What the warps do that do not multiply.
  template <class Memory, class Ring, class Items>
  __device__ __forceinline__ void fill(const attention_maps& of, const Memory& memory, Ring r, Items all,
                                       int warp) const {
    if (warp > 0) write_statistics(memory, all, warp - 1);
    else if (elected()) copy_queries<block, false>(z, of, items, r, all);
  }

  template <class Memory, class Ring, class Items>
  __device__ __forceinline__ void multiply(const Memory& memory, Ring r, Items all, int warp) const {
    const int group = warp / warps_of_group;
    const float factor = z.scale * log2_e;
    const sums_place at;
    attention_walk walk = items;
    Ring before = r;
    for (attention_item x; walk.next(x); all.advance()) {
      const int tile = x.tile + group, mine = tile < z.query_tiles ? z.keys_seen(tile) : 0;
      all.wait_until_full();
      const shared_address q = all.here() + group * pair_bytes, d_out = q + box_bytes;
      const float2* line = memory.line(all.number() * block::groups + group);
      const float2 of_row[2]{line[at.row_of(0)], line[at.row_of(2)]};
      narrow_sums sum;
      for (int j = 0; j < mine; ++j, r.advance()) {
        narrow_sums p, dp;
        multiply_pair(p, dp, q, d_out, r, before, j > 0);
#pragma unroll
        for (int i = 0; i < 32; ++i) p[i] = two_to_the(p[i] * factor - of_row[i / 2 % 2].x);
        if (z.causal && j == tile) hide_later_keys(p, at, 0.0f);
        wait_for_products<0>();
        settle(dp);
        left_factor ds;
#pragma unroll
        for (int i = 0; i < 16; ++i) {
          const float delta = of_row[i % 2].y;
          ds[i] = rounded(p[2 * i] * (dp[2 * i] - delta), p[2 * i + 1] * (dp[2 * i + 1] - delta));
        }
        begin_products();
        multiply_columns(sum, ds, r.here(), j > 0);
      }
      wait_for_products<0>();
      settle(sum);
      if (mine > 0) before.release();
      r.pass(z.keys_seen(x, block::groups) - mine);
      all.release();
      if (mine == 0) continue;
      const std::size_t token = z.query_row(x.row, tile) + warp % warps_of_group * 16;
      store_tile_rows(dq + token * dq_stride + x.head * head_dim, dq_stride, sum, z.scale,
                      memory.place(warp));
    }
  }
};

}  // namespace rankc::runtime::cuda::hopper
