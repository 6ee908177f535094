// SPDX-License-Identifier: Apache-2.0
// The gradients of keys and values, by tiles of keys.
// Source: FlashAttention (Dao et al. 2022), algorithm 4; FlashAttention-3 (Shah et al. 2024) for the roles of
// warpgroups.
#pragma once
#include "hopper_queries_gradient.cuh"

namespace rankc::runtime::cuda::hopper {

/// The block of the pass, and the registers per thread of its multiplying warpgroups and of the producer. A
/// stage has a line of statistics and, with masks, a line of document starts. With two stages the kernel
/// would deadlock (tests/protocols/places.pml).
template <int Parts>
struct keys_gradient_setup {
  using block = attention_block<2, 2, 2, 4, 8, 1>;
  static constexpr int registers = 232, others_registers = 40;
};
template <>
struct keys_gradient_setup<1> {
  using block = attention_block<1, 2, 2, 6, 12>;
  static constexpr int registers = 224, others_registers = 56;
};

/// The keys and values of a tile as left factors: in registers if there is room, else in shared memory.
template <int Parts>
struct key_factors {
  shared_address k, v;
  template <class Memory, class Items>
  __device__ key_factors(const Memory&, const Items& all, int group, int group_bytes)
      : k(all.here() + group * group_bytes), v(k + Parts * box_bytes) {}
  __device__ void keep(bool, void*) const {}
};
template <>
struct key_factors<1> {
  left_factor k, v;
  template <class Memory, class Items>
  __device__ key_factors(const Memory& memory, const Items& all, int group, int) {
    load_factor(k, memory.box(all.number(), group, 0));
    load_factor(v, memory.box(all.number(), group, 1));
  }
  __device__ void keep(bool never, void* nowhere) const {
    keep_factor(k, never, nowhere);
    keep_factor(v, never, nowhere);
  }
};

/// dv = sum over queries of p^T dout, dk = scale * sum over queries of ds^T q, over the query heads that
/// share a key head in order. The rows of products are keys.
/// Shapes: dk, dv (tokens, kv_heads, 64 Parts) with their stride.
template <int Parts, class Sight>
struct keys_gradient : keys_gradient_setup<Parts> {
  using block = typename keys_gradient_setup<Parts>::block;
  static_assert(block::stages >= 3);
  static constexpr int fillers = 1;
  attention_call z;
  Sight sight;
  bf16 *dk, *dv;
  query_statistics statistics;
  int stride;
  attention_walk items;

  keys_gradient(const attention_call& call, const Sight& sees, bf16* dk_to, bf16* dv_to,
                const query_statistics& statistics_from, int to_stride)
      : z(call),
        sight(sees),
        dk(dk_to),
        dv(dv_to),
        statistics(statistics_from),
        stride(to_stride),
        items(block::groups, z.rows, z.kv_heads, sight.key_tiles, sight.causal, false) {}

  /// One warp copies the tiles of keys, and the queries that see them with their statistics and starts.
  template <class Memory, class Ring, class Items>
  __device__ void copy(const attention_maps& of, const Memory& memory, Ring r, Items all) const {
    attention_walk walk = items;
    const bool copies = elected();
    for (attention_item x; walk.next(x); all.advance()) {
      const int count = min(block::groups, sight.key_tiles - x.tile), column = x.head * head_dim<Parts>;
      all.wait_until_empty();
      const tile_range queries = find_queries<block>(sight, x, count, memory.ranges(all.number()));
      __syncwarp();
      if (copies) {
        arrive_expecting(all.full(), count * block::pair_bytes);
        for (int g = 0; g < count; ++g)
          copy_pair<Parts>(all.here() + g * block::pair_bytes, of.k, of.v, sight.key_row(x.row, x.tile + g),
                           column, all.full());
        for (int head = x.head * z.heads_each, end = head + z.heads_each; head < end; ++head)
          for (int i = queries.begin; i < queries.end; ++i, r.advance())
            copy_stage(of, memory, r, x, head, i);
      }
      __syncwarp();
    }
  }

  template <class Memory, class Ring>
  __device__ __forceinline__ void copy_stage(const attention_maps& of, const Memory& memory, const Ring& r,
                                             const attention_item& x, int head, int tile) const {
    constexpr int start_bytes = box_side * static_cast<int>(sizeof(std::int32_t));
    r.wait_until_empty();
    arrive_expecting(r.full(), block::pair_bytes + line_bytes + (sight.has_starts() ? start_bytes : 0));
    copy_pair<Parts>(r.here(), of.q, of.dout, z.query_row(x.row, tile), head * head_dim<Parts>, r.full());
    copy_line(memory.line_address(r.number()), statistics.of(z, x.row, head, tile), line_bytes, r.full());
    if (sight.has_starts())
      copy_line(memory.line_address(block::stages + r.number()), sight.starts_of(x.row, tile), start_bytes,
                r.full());
  }

  template <class Memory, class Ring, class Items>
  __device__ __forceinline__ void fill(const attention_maps& of, const Memory& memory, Ring r, Items all,
                                       int warp) const {
    if (warp == 0) copy(of, memory, r, all);
  }

  template <class Memory, class Ring, class Items>
  __device__ __forceinline__ void multiply(const Memory& memory, Ring r, Items all, int warp) const {
    const int group = warp / warps_of_group;
    const float factor = z.scale * log2_e;
    const sums_place at;
    attention_walk walk = items;
    Ring before = r;
    for (attention_item x; walk.next(x); all.advance()) {
      const int tile = x.tile + group;
      all.wait_until_full();
      const met_tiles queries = met_queries<block>(sight, x, group, memory.ranges(all.number()));
      const key_factors<Parts> keys(memory, all, group, block::group_bytes);
      if constexpr (Parts == 1) all.release();
      narrow_sums dk_sum[Parts], dv_sum[Parts];
      bool add = false, held = false;  // held: products still read the previous stage
      for (int head = 0; head < z.heads_each; ++head) {
        r.pass(queries.before());
        for (int i = queries.mine.begin; i < queries.mine.end; ++i, r.advance()) {
          narrow_sums p, dp;
          multiply_pair<Parts>(p, dp, keys.k, keys.v, r, before, held);
          const float2* line = memory.line(r.number()) + at.column;
#pragma unroll
          for (int n = 0; n < 32; ++n) p[n] = two_to_the(p[n] * factor - line[n / 4 * 8 + n % 2].x);
          sight.hide_rows(p, at, i, tile, memory.line(block::stages + r.number()));
          left_factor weights, ds;
          round_factor(weights, p);
          begin_products();
          multiply_columns(dv_sum, weights, r.here() + block::tile_bytes, add);
          wait_for_products<1>();
          settle(dp);
#pragma unroll
          for (int n = 0; n < 32; ++n) p[n] *= dp[n] - line[n / 4 * 8 + n % 2].y;
          round_factor(ds, p);
          begin_products();
          multiply_columns(dk_sum, ds, r.here(), add);
          add = held = true;
          if constexpr (Parts > 1) {  // too few registers to overlap the next stage's products
            wait_for_products<0>();
            before.release();
            held = false;
          }
        }
        if constexpr (Sight::masked) {  // a held stage would block the copies of the stages to pass
          wait_for_products<0>();
          if (held) before.release();
          held = false;
        }
        r.pass(queries.behind());
      }
      wait_for_products<0>();
      settle_parts(dk_sum);
      settle_parts(dv_sum);
      keys.keep(stride == 0, dk);
      if (held) before.release();
      if constexpr (Parts > 1) all.release();
      if constexpr (Sight::masked) {
        if (tile >= sight.key_tiles) continue;
        if (!add) {
          clear_parts(dk_sum);
          clear_parts(dv_sum);
        }
      } else if (!add) continue;
      const std::size_t token = sight.key_row(x.row, tile) + warp % warps_of_group * 16,
                        to = token * stride + x.head * head_dim<Parts>;
      store_tile_rows(dk + to, stride, dk_sum, z.scale, memory.place(warp));
      store_tile_rows(dv + to, stride, dv_sum, 1.0f, memory.place(warp));
    }
  }
};

}  // namespace rankc::runtime::cuda::hopper
