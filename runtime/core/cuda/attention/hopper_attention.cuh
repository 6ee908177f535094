// SPDX-License-Identifier: Apache-2.0
// The common steps of attention on Hopper's tensor cores and of its gradient: copies of tiles, and products
// of tiles of 64 tokens. A head has `Parts` times 64 elements. A tile has `Parts` boxes.
#pragma once
#include "hopper_block.cuh"

namespace rankc::runtime::cuda::hopper {

/// The sizes of a call.
struct attention_call {
  int rows, heads, kv_heads;
  int heads_each;     // query heads that share a key head
  int queries_apart;  // tokens from one row to the next
  float scale;

  __device__ int query_row(int row, int tile) const { return row * queries_apart + tile * box_side; }
  /// The index of the first log-sum-exp of a tile of queries.
  __device__ std::size_t lse_of(const attention_item& x, int tile) const {
    return static_cast<std::size_t>(x.row * heads + x.head) * queries_apart + tile * box_side;
  }
};

/// A call's operands for the copy engine. Rows are tokens, and columns are the elements of the heads.
struct attention_maps {
  CUtensorMap q, k, v, dout = {};  // dout: only for the gradient
};

template <int Parts>
inline constexpr int head_dim = Parts * box_side;

/// Copies a tile.
template <int Parts>
__device__ __forceinline__ void copy_tile(shared_address to, const CUtensorMap& from, int row, int column,
                                          shared_address full) {
#pragma unroll
  for (int part = 0; part < Parts; ++part)
    copy_box(to + part * box_bytes, from, row, column + part * box_side, full);
}
/// Copies a pair of tiles to adjacent places.
template <int Parts>
__device__ __forceinline__ void copy_pair(shared_address to, const CUtensorMap& first,
                                          const CUtensorMap& second, int row, int column,
                                          shared_address full) {
  copy_tile<Parts>(to, first, row, column, full);
  copy_tile<Parts>(to + Parts * box_bytes, second, row, column, full);
}

/// The range of key tiles that the query tiles of an item see. With masks, each lane of the producer's warp
/// finds the range of one tile and stores it for the other warps.
template <class Block, class Sight>
__device__ __forceinline__ tile_range find_keys(const Sight& sight, const attention_item& x, int tiles,
                                                tile_range* stored) {
  if constexpr (!Sight::masked) return sight.keys_of(x.row, x.tile + tiles - 1);
  const int lane = threadIdx.x % warp_size;
  const tile_range mine = sight.keys_of(x.row, x.tile + min(lane, tiles - 1));
  if (lane < Block::groups) stored[lane] = mine;
  return {__shfl_sync(0xffffffffu, mine.begin, 0), __shfl_sync(0xffffffffu, mine.end, tiles - 1)};
}
/// The range of query tiles that see the key tiles of an item. With masks, the range of each tile is stored
/// for the other warps.
template <class Block, class Sight>
__device__ __forceinline__ tile_range find_queries(const Sight& sight, const attention_item& x, int tiles,
                                                   tile_range* stored) {
  if constexpr (!Sight::masked) return sight.queries_of(x.row, x.tile);
  tile_range all{};
  for (int g = 0; g < tiles; ++g) {
    const tile_range mine = sight.queries_of(x.row, x.tile + g);
    if (g == 0) all = mine;
    all.end = mine.end;
    if (first_of_warp()) stored[g] = mine;
  }
  return all;
}

/// The key tiles that a group's query tile is multiplied with, for all lanes of a multiplying warp.
template <class Block, class Sight>
__device__ __forceinline__ met_tiles met_keys(const Sight& sight, const attention_item& x, int group,
                                              const tile_range* stored) {
  const int tiles = min(Block::groups, sight.query_tiles - x.tile);
  if constexpr (Sight::masked) return met_by(stored, group, tiles);
  const tile_range all = sight.keys_of(x.row, x.tile + tiles - 1);
  return {group < tiles ? sight.keys_of(x.row, x.tile + group) : tile_range{all.end, all.end}, all};
}
/// The query tiles that a group's key tile is multiplied with, for all lanes of a multiplying warp.
template <class Block, class Sight>
__device__ __forceinline__ met_tiles met_queries(const Sight& sight, const attention_item& x, int group,
                                                 const tile_range* stored) {
  const int tiles = min(Block::groups, sight.key_tiles - x.tile);
  if constexpr (Sight::masked) return met_by(stored, group, tiles);
  const tile_range all = sight.queries_of(x.row, x.tile);
  return {group < tiles ? sight.queries_of(x.row, x.tile + group) : tile_range{all.end, all.end}, all};
}

/// The producer warp's copies for all items: the query tiles, with their tiles of dout if a group has two
/// operands, and then the tiles of keys and values that they see. `LastFirst`: the last of these comes first.
template <class Block, bool LastFirst, class Sight, class Memory, class Ring, class Items>
__device__ __forceinline__ void copy_queries(const attention_call& z, const Sight& sight,
                                             const attention_maps& of, attention_walk walk,
                                             const Memory& memory, Ring r, Items all) {
  constexpr int parts = Block::parts;
  const bool copies = elected();
  for (attention_item x; walk.next(x); all.advance()) {
    const int count = min(Block::groups, sight.query_tiles - x.tile), column = x.head * head_dim<parts>,
              key_column = x.head / z.heads_each * head_dim<parts>;
    all.wait_until_empty();
    const tile_range keys = find_keys<Block>(sight, x, count, memory.ranges(all.number()));
    __syncwarp();
    if (copies) {
      arrive_expecting(all.full(), count * Block::group_bytes);
      for (int g = 0; g < count; ++g) {
        const shared_address to = all.here() + g * Block::group_bytes;
        copy_tile<parts>(to, of.q, z.query_row(x.row, x.tile + g), column, all.full());
        if constexpr (Block::operands == 2)
          copy_tile<parts>(to + Block::tile_bytes, of.dout, z.query_row(x.row, x.tile + g), column,
                           all.full());
      }
      for (int n = 0; n < keys.count(); ++n, r.advance()) {
        const int tile = LastFirst ? keys.end - 1 - n : keys.begin + n;
        r.wait_until_empty();
        arrive_expecting(r.full(), Block::pair_bytes);
        copy_pair<parts>(r.here(), of.k, of.v, sight.key_row(x.row, tile), key_column, r.full());
      }
    }
    __syncwarp();
  }
}

/// The index of this warp among the multiplying warps; negative for the other warps. Because of the shuffle,
/// the compiler knows that it is the same in all lanes.
__device__ inline int multiplying_warp() {
  return __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x / warp_size), 0) - warps_of_group;
}

/// Sums rounded to bf16, as the left factor of a product. A register holds two adjacent elements of a row.
using left_factor = unsigned[16];
__device__ inline unsigned rounded(float first, float second) {
  const __nv_bfloat162 two = __floats2bfloat162_rn(first, second);
  return reinterpret_cast<const unsigned&>(two);
}
__device__ __forceinline__ void round_factor(left_factor& to, const narrow_sums& d) {
#pragma unroll
  for (int i = 0; i < 16; ++i) to[i] = rounded(d[2 * i], d[2 * i + 1]);
}
__device__ inline void load_factor(left_factor& to, const std::byte* box) {
  const sums_place at;
#pragma unroll
  for (int i = 0; i < 16; ++i) {
    const int row = at.row + i % 2 * 8, piece = i / 2 ^ row % 8;
    to[i] = *reinterpret_cast<const unsigned*>(box + row * 128 + piece * 16 + at.column * 2);
  }
}
/// Called after a loop in which the factor does not change. Otherwise, because nothing reads the factor after
/// the loop, ptxas of CUDA 13.0 reuses its registers inside the loop. `never` is false.
__device__ inline void keep_factor(const left_factor& a, bool never, void* nowhere) {
  if (never)
    for (const unsigned x : a) *static_cast<volatile unsigned*>(nowhere) = x;
}

/// d = a b^T, for two tiles.
template <int Parts>
__device__ __forceinline__ void multiply_rows(narrow_sums& d, shared_address a, shared_address b) {
  constexpr int next = next_terms<major::sum>;
#pragma unroll
  for (int part = 0; part < Parts; ++part)
#pragma unroll
    for (int k = 0; k < box_side / 16; ++k)
      multiply<major::sum, major::sum>(d, further(described(a), part * box_bytes + k * next),
                                       further(described(b), part * box_bytes + k * next), part > 0 || k > 0);
  commit_products();
}
template <int Parts>
__device__ __forceinline__ void multiply_rows(narrow_sums& d, const left_factor& a, shared_address b) {
  static_assert(Parts == 1);
#pragma unroll
  for (int k = 0; k < box_side / 16; ++k)
    multiply<major::sum>(d, a + 4 * k, further(described(b), k * next_terms<major::sum>), k > 0);
  commit_products();
}
/// d = a b, or d += a b with `add`, for a tile b.
template <int Parts>
__device__ __forceinline__ void multiply_columns(narrow_sums (&d)[Parts], const left_factor& a,
                                                 shared_address b, bool add) {
#pragma unroll
  for (int part = 0; part < Parts; ++part)
#pragma unroll
    for (int k = 0; k < box_side / 16; ++k)
      multiply<major::result>(d[part], a + 4 * k,
                              further(described(b), part * box_bytes + k * next_terms<major::result>),
                              add || k > 0);
  commit_products();
}

template <int Parts>
__device__ __forceinline__ void settle_parts(narrow_sums (&d)[Parts]) {
#pragma unroll
  for (narrow_sums& part : d) settle(part);
}
template <int Parts>
__device__ __forceinline__ void clear_parts(narrow_sums (&d)[Parts]) {
#pragma unroll
  for (narrow_sums& part : d)
#pragma unroll
    for (float& x : part) x = 0.0f;
}

/// Starts the products with the next pair of tiles of a ring: p, which is complete on return, and dp, which
/// is not. On return the products with the previous pair are complete, too, and `release_before` frees its
/// stage.
template <int Parts, class Factor, class Ring>
__device__ __forceinline__ void multiply_pair(narrow_sums& p, narrow_sums& dp, const Factor& of_p,
                                              const Factor& of_dp, const Ring& r, Ring& before,
                                              bool release_before) {
  r.wait_until_full();
  begin_products();
  multiply_rows<Parts>(p, of_p, r.here());
  multiply_rows<Parts>(dp, of_dp, r.here() + Parts * box_bytes);
  wait_for_products<1>();
  if (release_before) before.release();
  before = r;
  settle(p);
}

/// Stores a warp's 16 rows of sums times `factor`.
template <int Parts>
__device__ __forceinline__ void store_tile_rows(bf16* to, std::size_t stride, narrow_sums (&d)[Parts],
                                                float factor, std::byte* place) {
  const int lane = threadIdx.x % warp_size, row = lane / 8, column = lane % 8;
#pragma unroll
  for (int part = 0; part < Parts; ++part) {
#pragma unroll
    for (float& x : d[part]) x *= factor;
    __syncwarp();  // the previous sums at `place` have been stored
    stage_sums(place, d[part], 0, bf16{});
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 4; ++i)
      store(to + (row + 4 * i) * stride + part * box_side + column * 8,
            load<bf16, 8>(reinterpret_cast<const bf16*>(place + piece(row + 4 * i, column))));
  }
}

}  // namespace rankc::runtime::cuda::hopper
