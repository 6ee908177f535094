// SPDX-License-Identifier: Apache-2.0
// The gradient of queries, by tiles of queries.
// Source: FlashAttention (Dao et al. 2022), algorithm 4, with queries in the outer loop; FlashAttention-3
// (Shah et al. 2024) for the roles of warpgroups.
#pragma once
#include "hopper_attention.cuh"

namespace rankc::runtime::cuda::hopper {

/// The numbers from which a query's weights and their gradients are computed: its log-sum-exp in base 2, and
/// the sum of dout o.
/// Shapes: f32 (rows, heads, tiles of queries, 64, 2).
struct query_statistics {
  float2* all;
  int query_tiles;
  __device__ float2* of(const attention_call& z, int row, int head, int tile) const {
    return all + (static_cast<std::size_t>(row * z.heads + head) * query_tiles + tile) * box_side;
  }
};

/// One warp computes the statistics of a tile, and stores them in `here` and `there`.
template <int Parts>
__device__ __forceinline__ void make_statistics(float2* here, float2* there, const bf16* dout, const bf16* o,
                                                const float* lse, int stride) {
  constexpr int at_once = 4 / Parts, rows_each = 4;  // loads in flight, and rows per load
  const int lane = threadIdx.x % warp_size, row = lane / 8, column = lane % 8 * 8;
  const float lse_of[2]{lse[lane], lse[lane + warp_size]};
  // `kept`, so that the loads of a group have one address and constant offsets. Else the compiler computes
  // each row's address from the item, and has too few registers for all loads of a group in flight.
  const std::size_t mine = kept(static_cast<std::size_t>(row) * stride + column);
  dout += mine;
  o += mine;
#pragma unroll
  for (int first = 0; first < box_side; first += at_once * rows_each) {
    pack<bf16, 8> a[at_once][Parts], b[at_once][Parts];
    const std::size_t group = kept(static_cast<std::size_t>(first) * stride);
#pragma unroll
    for (int n = 0; n < at_once; ++n)
#pragma unroll
      for (int part = 0; part < Parts; ++part) {
        const std::size_t from = group + static_cast<std::size_t>(n * rows_each) * stride + part * box_side;
        a[n][part] = load<bf16, 8>(dout + from);
        b[n][part] = load<bf16, 8>(o + from);
      }
    __syncwarp();  // all loads have been issued
#pragma unroll
    for (int n = 0; n < at_once; ++n) {
      const int r = first + n * rows_each + row;
      float sum = 0.0f;
#pragma unroll
      for (int part = 0; part < Parts; ++part)
#pragma unroll
        for (int i = 0; i < 8; ++i) sum += to_float(a[n][part].element[i]) * to_float(b[n][part].element[i]);
#pragma unroll
      for (int step = 4; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
      const float l = __shfl_sync(0xffffffffu, lse_of[(first + n * rows_each) / warp_size], r % warp_size);
      if (lane % 8 == 0) here[r] = there[r] = make_float2(log2_e * l, sum);
    }
  }
}

/// The block of the pass, and the registers per thread of its multiplying warpgroups and of the other one.
template <int Parts>
struct queries_gradient_setup {
  using block = attention_block<2, 2, 2, 4, 2, 1>;
  static constexpr int registers = 208, others_registers = 88;
};
template <>
struct queries_gradient_setup<1> {
  using block = attention_block<1, 3, 2, 4, 6>;
  static constexpr int registers = 152, others_registers = 56;
};

/// dq = scale * sum over keys of ds k, with p = exp(score - lse), ds = p (dout v - delta). It also stores the
/// statistics for the other kernel.
/// Shapes: dq, dout, o (tokens, heads, 64 Parts) with their strides; lse (rows, heads, queries_apart).
template <int Parts, class Sight>
struct queries_gradient : queries_gradient_setup<Parts> {
  using block = typename queries_gradient_setup<Parts>::block;
  static constexpr int fillers = 1 + block::groups;
  attention_call z;
  Sight sight;
  bf16* dq;
  const bf16 *dout, *o;
  const float* lse;
  query_statistics statistics;
  int dq_stride, o_stride;
  attention_walk items;

  queries_gradient(const attention_call& call, const Sight& sees, bf16* to, const bf16* dout_from,
                   const bf16* o_from, const float* lse_from, const query_statistics& statistics_to,
                   int to_stride, int from_stride)
      : z(call),
        sight(sees),
        dq(to),
        dout(dout_from),
        o(o_from),
        lse(lse_from),
        statistics(statistics_to),
        dq_stride(to_stride),
        o_stride(from_stride),
        items(block::groups, z.rows, z.heads, sight.query_tiles, sight.causal, true) {}

  /// One warp computes the statistics for the tiles of a warpgroup.
  template <class Memory, class Items>
  __device__ void write_statistics(const Memory& memory, Items all, int group) const {
    attention_walk walk = items;
    for (attention_item x; walk.next(x); all.advance()) {
      const int tile = x.tile + group;
      all.wait_until_empty();
      if (tile < sight.query_tiles) {
        const std::size_t first =
            static_cast<std::size_t>(z.query_row(x.row, tile)) * o_stride + x.head * head_dim<Parts>;
        make_statistics<Parts>(memory.line(all.number() * block::groups + group),
                               statistics.of(z, x.row, x.head, tile), dout + first, o + first,
                               lse + z.lse_of(x, tile), o_stride);
      }
      __syncwarp();
      if (first_of_warp()) arrive(all.full());
    }
  }

  /// The work of the warps that do not multiply.
  template <class Memory, class Ring, class Items>
  __device__ __forceinline__ void fill(const attention_maps& of, const Memory& memory, Ring r, Items all,
                                       int warp) const {
    if (warp == 0) copy_queries<block, false>(z, sight, of, items, memory, r, all);
    else if (warp <= block::groups) write_statistics(memory, all, warp - 1);
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
      const auto seen = sight.rows_of(x.row, tile, at);
      all.wait_until_full();
      const met_tiles keys = met_keys<block>(sight, x, group, memory.ranges(all.number()));
      const shared_address q = all.here() + group * block::group_bytes, d_out = q + block::tile_bytes;
      const float2* line = memory.line(all.number() * block::groups + group);
      const float2 of_row[2]{line[at.row_of(0)], line[at.row_of(2)]};
      narrow_sums sum[Parts];
      bool add = false;
      r.pass(keys.before());
      for (int j = keys.mine.begin; j < keys.mine.end; ++j, r.advance()) {
        narrow_sums p, dp;
        multiply_pair<Parts>(p, dp, q, d_out, r, before, add);
#pragma unroll
        for (int i = 0; i < 32; ++i) p[i] = two_to_the(p[i] * factor - of_row[i / 2 % 2].x);
        seen.hide(p, at, j, 0.0f);
        wait_for_products<0>();
        settle(dp);
        left_factor ds;
#pragma unroll
        for (int i = 0; i < 16; ++i) {
          const float delta = of_row[i % 2].y;
          ds[i] = rounded(p[2 * i] * (dp[2 * i] - delta), p[2 * i + 1] * (dp[2 * i + 1] - delta));
        }
        begin_products();
        multiply_columns(sum, ds, r.here(), add);
        add = true;
      }
      wait_for_products<0>();
      settle_parts(sum);
      if (add) before.release();
      r.pass(keys.behind());
      all.release();
      if constexpr (Sight::masked) {
        if (tile >= sight.query_tiles) continue;
        if (!add) clear_parts(sum);
      } else if (!add) continue;
      const std::size_t token = z.query_row(x.row, tile) + warp % warps_of_group * 16;
      store_tile_rows(dq + token * dq_stride + x.head * head_dim<Parts>, dq_stride, sum, z.scale,
                      memory.place(warp));
    }
  }
};

}  // namespace rankc::runtime::cuda::hopper
