// SPDX-License-Identifier: Apache-2.0
// Attention, forward, by tiles of queries.
// Source: FlashAttention-3 (Shah et al. 2024), for the overlap of the next tile's scores with the product of
// the previous weights and values, and for the roles of warpgroups.
#pragma once
#include "hopper_softmax.cuh"

namespace rankc::runtime::cuda::hopper {

/// The block of the forward pass, and the registers per thread of its multiplying warpgroups and of the
/// producer.
template <int Parts, bool Masked>
struct forward_setup {
  using block = attention_block<Parts, 3, 1, Parts == 1 ? 6 : 3, 0>;
  static constexpr int registers = 160, others_registers = 32;
};
template <>
struct forward_setup<1, false> {
  using block = attention_block<1, 4, 1, 6, 0>;
  static constexpr int registers = 112, others_registers = 32;
};

/// o = softmax(scale q k^T) v, and lse, the logarithm of the softmax's denominator. If a query sees no key,
/// its o is 0 and its lse is -infinity.
/// Shapes: o (tokens, heads, 64 Parts) with its stride; lse (rows, heads, queries_apart).
template <int Parts, class Sight>
struct forward : forward_setup<Parts, Sight::masked> {
  using block = typename forward_setup<Parts, Sight::masked>::block;
  static constexpr int fillers = 1;
  attention_call z;
  Sight sight;
  bf16* o;
  float* lse;
  int stride;
  attention_walk items;

  forward(const attention_call& call, const Sight& sees, bf16* to, float* lse_to, int o_stride)
      : z(call),
        sight(sees),
        o(to),
        lse(lse_to),
        stride(o_stride),
        items(block::groups, z.rows, z.heads, sight.query_tiles, sight.causal, true) {}

  template <class Memory, class Ring, class Items>
  __device__ void fill(const attention_maps& of, const Memory& memory, Ring r, Items all, int warp) const {
    if (warp == 0) copy_queries<block, true>(z, sight, of, items, memory, r, all);
  }

  template <class Memory, class Ring, class Items>
  __device__ __forceinline__ void multiply(const Memory& memory, Ring r, Items all, int warp) const {
    const int group = warp / warps_of_group;
    const float factor = z.scale * log2_e;
    const sums_place at;
    attention_walk walk = items;
    for (attention_item x; walk.next(x); all.advance()) {
      const auto seen = sight.rows_of(x.row, x.tile + group, at);
      all.wait_until_full();
      const met_tiles keys = met_keys<block>(sight, x, group, memory.ranges(all.number()));
      r.pass(keys.behind());
      if (keys.mine.count() > 0)
        multiply_tile(memory, r, x, x.tile + group, keys.mine, seen, at,
                      all.here_for_warp() + group * block::group_bytes, factor, warp);
      r.pass(keys.before());
      all.release();
      if constexpr (Sight::masked)
        if (keys.mine.count() == 0 && x.tile + group < sight.query_tiles)
          store_unseen(memory, x, x.tile + group, at, warp);
    }
  }

  /// Computes a tile of queries, at address `q`, with the keys that it sees. The last tile of keys, which is
  /// on the diagonal, comes first.
  template <class Memory, class Ring, class Rows>
  __device__ __forceinline__ void multiply_tile(const Memory& memory, Ring& r, const attention_item& x,
                                                int tile, const tile_range& keys, const Rows& seen,
                                                const sums_place& at, shared_address q, float factor,
                                                int warp) const {
    constexpr int values_at = block::tile_bytes;
    narrow_sums sum[Parts], p;
    left_factor weights;
    running_softmax of_rows;
    r.wait_until_full();
    begin_products();
    multiply_rows<Parts>(p, q, r.here_for_warp());
    wait_for_products<0>();
    settle(p);
    seen.hide_in_last(p, at, keys.end - 1);
    of_rows.begin(p, factor);
    round_factor(weights, p);
    Ring before = r;
    r.advance();
    bool add = false;
    for (int j = keys.end - 2; j >= keys.begin; --j) {
      const shared_address next = r.here_for_warp(), values = before.here_for_warp() + values_at;
      r.wait_until_full();
      begin_products();
      multiply_rows<Parts>(p, q, next);
      multiply_columns(sum, weights, values, add);
      add = true;
      wait_for_products<1>();
      settle(p);
      if constexpr (Sight::masked) seen.hide(p, at, j, -INFINITY);
      const bool shrinks = of_rows.meet(p, factor);
      wait_for_products<0>();
      settle_parts(sum);
      before.release();
      before = r;
      r.advance();
      if (shrinks) of_rows.shrink(sum);
      round_factor(weights, p);
    }
    begin_products();
    multiply_columns(sum, weights, before.here_for_warp() + values_at, add);
    of_rows.finish();
    wait_for_products<0>();
    settle_parts(sum);
    before.release();
    of_rows.divide(sum);
    store_tile(memory, x, tile, at, sum, of_rows.logarithm(0), of_rows.logarithm(1), warp);
  }

  template <class Memory>
  __device__ __forceinline__ void store_tile(const Memory& memory, const attention_item& x, int tile,
                                             const sums_place& at, narrow_sums (&sum)[Parts], float first,
                                             float second, int warp) const {
    const std::size_t token = z.query_row(x.row, tile) + warp % warps_of_group * 16;
    store_tile_rows(o + token * stride + x.head * head_dim<Parts>, stride, sum, 1.0f, memory.place(warp));
    float* to = lse + z.lse_of(x, tile);
    if (at.column == 0) {
      to[at.row_of(0)] = first;
      to[at.row_of(2)] = second;
    }
  }

  template <class Memory>
  __device__ void store_unseen(const Memory& memory, const attention_item& x, int tile, const sums_place& at,
                               int warp) const {
    narrow_sums sum[Parts];
    clear_parts(sum);
    store_tile(memory, x, tile, at, sum, -INFINITY, -INFINITY, warp);
  }
};

}  // namespace rankc::runtime::cuda::hopper
