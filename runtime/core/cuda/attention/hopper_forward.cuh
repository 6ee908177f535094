// SPDX-License-Identifier: Apache-2.0
// Attention, forward, by tiles of queries. Source: FlashAttention-3 (Shah et al. 2024), for products of the
// next keys beside those of the weights before, and for the roles of warpgroups.
#pragma once
#include "hopper_softmax.cuh"

namespace rankc::runtime::cuda::hopper {

/// o = softmax(scale q k^T) v, and lse, the logarithm of what the softmax divides by.
/// Shapes: o (tokens, heads, 64) with its stride; lse (rows, heads, queries_apart).
struct forward {
  using block = attention_block<4, 1, 6, 0>;
  static constexpr int fillers = 1, registers = 112, others_registers = 32;
  attention_call z;
  bf16* o;
  float* lse;
  int stride;
  attention_walk items{block::groups, z.rows, z.heads, z.query_tiles, z.causal, true};

  template <class Memory, class Ring, class Items>
  __device__ void fill(const attention_maps& of, const Memory&, Ring r, Items all, int warp) const {
    if (warp == 0 && elected()) copy_queries<block, true>(z, of, items, r, all);
  }

  template <class Memory, class Ring, class Items>
  __device__ __forceinline__ void multiply(const Memory& memory, Ring r, Items all, int warp) const {
    const int group = warp / warps_of_group;
    const float factor = z.scale * log2_e;
    attention_walk walk = items;
    for (attention_item x; walk.next(x); all.advance()) {
      const int tile = x.tile + group, mine = tile < z.query_tiles ? z.keys_seen(tile) : 0;
      all.wait_until_full();
      r.pass(z.keys_seen(x, block::groups) - mine);
      if (mine > 0)
        multiply_tile(memory, r, x, tile, mine, all.here_for_warp() + group * box_bytes, factor, warp);
      all.release();
    }
  }

  /// Queries of a tile, in `q`, and the keys that they see, of which the last, on the diagonal, comes first.
  template <class Memory, class Ring>
  __device__ __forceinline__ void multiply_tile(const Memory& memory, Ring& r, const attention_item& x,
                                                int tile, int keys, shared_address q, float factor,
                                                int warp) const {
    narrow_sums sum, p;
    left_factor weights;
    running_softmax of_rows;
    r.wait_until_full();
    begin_products();
    multiply_rows(p, q, r.here_for_warp());
    wait_for_products<0>();
    settle(p);
    if (z.causal) hide_later_keys(p, sums_place{}, -INFINITY);
    of_rows.begin(p, factor);
    round_factor(weights, p);
    Ring before = r;
    r.advance();
    for (int j = 1; j < keys; ++j) {
      const shared_address next = r.here_for_warp(), values = before.here_for_warp() + box_bytes;
      r.wait_until_full();
      begin_products();
      multiply_rows(p, q, next);
      multiply_columns(sum, weights, values, j > 1);
      wait_for_products<1>();
      settle(p);
      const bool shrinks = of_rows.meet(p, factor);
      wait_for_products<0>();
      settle(sum);
      before.release();
      before = r;
      r.advance();
      if (shrinks) of_rows.shrink(sum);
      round_factor(weights, p);
    }
    begin_products();
    multiply_columns(sum, weights, before.here_for_warp() + box_bytes, keys > 1);
    of_rows.finish();
    wait_for_products<0>();
    settle(sum);
    before.release();
    of_rows.divide(sum);
    const std::size_t token = z.query_row(x.row, tile) + warp % warps_of_group * 16;
    store_tile_rows(o + token * stride + x.head * head_dim, stride, sum, 1.0f, memory.place(warp));
    const sums_place at;
    float* to = lse + z.lse_of(x, tile);
    if (at.column == 0) {
      to[at.row_of(0)] = of_rows.logarithm(0);
      to[at.row_of(2)] = of_rows.logarithm(1);
    }
  }
};

}  // namespace rankc::runtime::cuda::hopper
