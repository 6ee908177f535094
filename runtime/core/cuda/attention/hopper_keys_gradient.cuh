// SPDX-License-Identifier: Apache-2.0
// The gradients of keys and values, by tiles of them. Source: FlashAttention (Dao et al. 2022), algorithm 4;
// FlashAttention-3 (Shah et al. 2024) for the roles of warpgroups.
#pragma once
#include "hopper_queries_gradient.cuh"

namespace rankc::runtime::cuda::hopper {

/// dv = sum over queries of p^T dout, dk = scale * sum over queries of ds^T q, over the query heads that
/// share a key head in order. Rows of products are keys. Shapes: dk, dv (tokens, kv_heads, 64) with their
/// stride.
struct keys_gradient {
  using block = attention_block<2, 2, 6, 6>;
  static_assert(block::stages >= 3);  // two would hang (tests/protocols/places.pml)
  static constexpr int fillers = 1, registers = 224, others_registers = 56;
  attention_call z;
  bf16 *dk, *dv;
  query_statistics statistics;
  int stride;
  attention_walk items{block::groups, z.rows, z.kv_heads, z.key_tiles, z.causal, false};

  /// By one thread: tiles of keys, and the queries that see them with their statistics.
  template <class Memory, class Ring, class Items>
  __device__ void copy(const attention_maps& of, const Memory& memory, Ring r, Items all) const {
    attention_walk walk = items;
    for (attention_item x; walk.next(x); all.advance()) {
      const int count = min(block::groups, z.key_tiles - x.tile), column = x.head * head_dim;
      all.wait_until_empty();
      arrive_expecting(all.full(), count * pair_bytes);
      for (int g = 0; g < count; ++g)
        copy_pair(all.here() + g * pair_bytes, of.k, of.v, z.key_row(x.row, x.tile + g), column, all.full());
      for (int head = x.head * z.heads_each, end = head + z.heads_each; head < end; ++head)
        for (int i = z.first_to_see(x.tile); i < z.query_tiles; ++i, r.advance()) {
          r.wait_until_empty();
          arrive_expecting(r.full(), pair_bytes + line_bytes);
          copy_pair(r.here(), of.q, of.dout, z.query_row(x.row, i), head * head_dim, r.full());
          copy_line(memory.line_address(r.number()), statistics.of(z, x.row, head, i), line_bytes, r.full());
        }
    }
  }

  template <class Memory, class Ring, class Items>
  __device__ __forceinline__ void fill(const attention_maps& of, const Memory& memory, Ring r, Items all,
                                       int warp) const {
    if (warp == 0 && elected()) copy(of, memory, r, all);
  }

  template <class Memory, class Ring, class Items>
  __device__ __forceinline__ void multiply(const Memory& memory, Ring r, Items all, int warp) const {
    const int group = warp / warps_of_group;
    const float factor = z.scale * log2_e;
    const sums_place at;
    attention_walk walk = items;
    Ring before = r;
    for (attention_item x; walk.next(x); all.advance()) {
      const int tile = x.tile + group, begin = z.first_to_see(x.tile),
                first = tile < z.key_tiles ? z.first_to_see(tile) : z.query_tiles;
      all.wait_until_full();
      left_factor k, v;
      load_factor(k, memory.box(all.number(), group, 0));
      load_factor(v, memory.box(all.number(), group, 1));
      all.release();
      narrow_sums dk_sum, dv_sum;
      bool add = false;
      for (int head = 0; head < z.heads_each; ++head) {
        r.pass(first - begin);
        for (int i = first; i < z.query_tiles; ++i, r.advance()) {
          narrow_sums p, dp;
          multiply_pair(p, dp, k, v, r, before, add);
          const float2* line = memory.line(r.number()) + at.column;
#pragma unroll
          for (int n = 0; n < 32; ++n) p[n] = two_to_the(p[n] * factor - line[n / 4 * 8 + n % 2].x);
          if (z.causal && i == tile) {
#pragma unroll
            for (int n = 0; n < 32; ++n)
              if (at.ahead_of(n) < 0) p[n] = 0.0f;
          }
          left_factor weights, ds;
          round_factor(weights, p);
          begin_products();
          multiply_columns(dv_sum, weights, r.here() + box_bytes, add);
          wait_for_products<1>();
          settle(dp);
#pragma unroll
          for (int n = 0; n < 32; ++n) p[n] *= dp[n] - line[n / 4 * 8 + n % 2].y;
          round_factor(ds, p);
          begin_products();
          multiply_columns(dk_sum, ds, r.here(), add);
          add = true;
        }
      }
      wait_for_products<0>();
      settle(dk_sum);
      settle(dv_sum);
      keep_factor(k, stride == 0, dk);
      keep_factor(v, stride == 0, dk);
      if (!add) continue;
      before.release();
      const std::size_t token = z.key_row(x.row, tile) + warp % warps_of_group * 16,
                        to = token * stride + x.head * head_dim;
      store_tile_rows(dk + to, stride, dk_sum, z.scale, memory.place(warp));
      store_tile_rows(dv + to, stride, dv_sum, 1.0f, memory.place(warp));
    }
  }
};

}  // namespace rankc::runtime::cuda::hopper
