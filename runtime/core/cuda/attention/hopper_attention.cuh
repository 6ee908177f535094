// SPDX-License-Identifier: Apache-2.0
// The steps that attention on Hopper's tensor cores and its gradient have in common: tiles to be copied, and
// products of tiles of 64 tokens. A head has `Parts` times 64 elements. A tile of it is as many boxes.
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

/// A call's operands for the copy engine: rows are tokens, columns are the heads' elements.
struct attention_maps {
  CUtensorMap q, k, v, dout = {};  // dout: of gradients alone
};

template <int Parts>
inline constexpr int head_dim = Parts * box_side;

/// Copies a tile, and a pair of tiles one behind the other.
template <int Parts>
__device__ __forceinline__ void copy_tile(shared_address to, const CUtensorMap& from, int row, int column,
                                          shared_address full) {
#pragma unroll
  for (int part = 0; part < Parts; ++part)
    copy_box(to + part * box_bytes, from, row, column + part * box_side, full);
}
template <int Parts>
__device__ __forceinline__ void copy_pair(shared_address to, const CUtensorMap& first,
                                          const CUtensorMap& second, int row, int column,
                                          shared_address full) {
  copy_tile<Parts>(to, first, row, column, full);
  copy_tile<Parts>(to + Parts * box_bytes, second, row, column, full);
}

/// The keys that the tiles of an item of queries see. With masks each lane of the producer's warp finds those
/// of one tile, and stores them for the other warps.
template <class Block, class Sight>
__device__ __forceinline__ tile_range find_keys(const Sight& sight, const attention_item& x, int tiles,
                                                tile_range* stored) {
  if constexpr (!Sight::masked) return sight.keys_of(x.row, x.tile + tiles - 1);
  const int lane = threadIdx.x % warp_size;
  const tile_range mine = sight.keys_of(x.row, x.tile + min(lane, tiles - 1));
  if (lane < Block::groups) stored[lane] = mine;
  return {__shfl_sync(0xffffffffu, mine.begin, 0), __shfl_sync(0xffffffffu, mine.end, tiles - 1)};
}
/// The same of the queries that see the tiles of an item of keys.
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

/// By all lanes of a warp that multiplies: the keys that its group's tile of an item meets.
template <class Block, class Sight>
__device__ __forceinline__ met_tiles met_keys(const Sight& sight, const attention_item& x, int group,
                                              const tile_range* stored) {
  const int tiles = min(Block::groups, sight.query_tiles - x.tile);
  if constexpr (Sight::masked) return met_by(stored, group, tiles);
  const tile_range all = sight.keys_of(x.row, x.tile + tiles - 1);
  return {group < tiles ? sight.keys_of(x.row, x.tile + group) : tile_range{all.end, all.end}, all};
}
template <class Block, class Sight>
__device__ __forceinline__ met_tiles met_queries(const Sight& sight, const attention_item& x, int group,
                                                 const tile_range* stored) {
  const int tiles = min(Block::groups, sight.key_tiles - x.tile);
  if constexpr (Sight::masked) return met_by(stored, group, tiles);
  const tile_range all = sight.queries_of(x.row, x.tile);
  return {group < tiles ? sight.queries_of(x.row, x.tile + group) : tile_range{all.end, all.end}, all};
}

/// By the producer's warp: for each item the tiles of queries, those of dout where a group has two operands,
/// and then the keys that they see, the first or the last of them first.
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

/// This warp's number among those that multiply, below 0 for the others: the same in all lanes, as the
/// compiler knows.
__device__ inline int multiplying_warp() {
  return __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x / warp_size), 0) - warps_of_group;
}

/// Sums as a left factor, in bf16: a register has two of a row.
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
/// Behind a loop in which the factor stays the same: ptxas of CUDA 13.0 gives its registers to others within
/// the loop where nothing reads them any more. `never` is false.
__device__ inline void keep_factor(const left_factor& a, bool never, void* nowhere) {
  if (never)
    for (const unsigned x : a) *static_cast<volatile unsigned*>(nowhere) = x;
}

/// d = a b^T of two tiles.
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
/// d = or += a b of a tile.
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

/// The products of a pair of tiles, with the next pair of a ring: p, which is ready, and dp, which is on its
/// way. What products read of the pair before has been read then.
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

/// Store a warp's 16 rows of sums times `factor`.
template <int Parts>
__device__ __forceinline__ void store_tile_rows(bf16* to, std::size_t stride, narrow_sums (&d)[Parts],
                                                float factor, std::byte* place) {
  const int lane = threadIdx.x % warp_size, row = lane / 8, column = lane % 8;
#pragma unroll
  for (int part = 0; part < Parts; ++part) {
#pragma unroll
    for (float& x : d[part]) x *= factor;
    __syncwarp();  // the sums that were here before have been stored
    stage_sums(place, d[part], 0, bf16{});
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 4; ++i)
      store(to + (row + 4 * i) * stride + part * box_side + column * 8,
            load<bf16, 8>(reinterpret_cast<const bf16*>(place + piece(row + 4 * i, column))));
  }
}

}  // namespace rankc::runtime::cuda::hopper
