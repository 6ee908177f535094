// SPDX-License-Identifier: Apache-2.0
// What attention of heads of 64 elements is made of on Hopper's tensor cores. A kernel's items are some tiles
// of 64 tokens of a head, one for each warpgroup that multiplies; another warpgroup has the copy engine bring
// these, and then all tiles that they meet, through stages in shared memory.
#pragma once
#include "../device/hopper_rows.cuh"
#include "hopper_walk.cuh"
#include "../device/tensor_map.hpp"

namespace rankc::runtime::cuda::hopper {

inline constexpr int head_dim = box_side, pair_bytes = 2 * box_bytes;
inline constexpr int line_bytes =
    box_side * static_cast<int>(sizeof(float2));  // two numbers of each token of a tile
inline constexpr int items_ahead = 2;

/// What a kernel is told of a call.
struct attention_call {
  int rows, heads, kv_heads;
  int heads_each;  // query heads that share a key head
  int query_tiles, key_tiles;
  int queries_apart, keys_apart;  // tokens from one row to the next
  float scale;
  bool causal;

  __device__ int query_row(int row, int tile) const { return row * queries_apart + tile * box_side; }
  __device__ int key_row(int row, int tile) const { return row * keys_apart + tile * box_side; }
  /// Tiles of keys that a tile of queries sees.
  __device__ int keys_seen(int tile) const { return causal ? min(tile + 1, key_tiles) : key_tiles; }
  /// The same of an item of so many tiles of queries.
  __device__ int keys_seen(const attention_item& x, int tiles) const { return keys_seen(x.tile + tiles - 1); }
  /// The first tile of queries that sees a tile of keys.
  __device__ int first_to_see(int tile) const { return causal ? tile : 0; }
  /// Where the log-sum-exps of a tile of queries begin.
  __device__ std::size_t lse_of(const attention_item& x, int tile) const {
    return static_cast<std::size_t>(x.row * heads + x.head) * queries_apart + tile * box_side;
  }
};

/// What the copy engine is told of a call's operands: rows are tokens, 64 columns a head.
struct attention_maps {
  CUtensorMap q, k, v, dout = {};  // dout: of gradients alone
};

/// Shared memory of a block with so many warpgroups that multiply: two items, of each group's `Boxes`, the
/// stages, a pair of boxes each, a place for each multiplying warp to put sums in, lines, and barriers.
template <int Groups, int Boxes, int Stages, int Lines>
struct attention_block {
  static constexpr int groups = Groups, boxes = Boxes, stages = Stages,
                       multiplying_warps = groups * warps_of_group;
  static constexpr int threads = (groups + 1) * warps_of_group * warp_size;
  static constexpr int group_bytes = Boxes * box_bytes, item_bytes = groups * group_bytes;
  static constexpr int first_stage = items_ahead * item_bytes, staging = first_stage + stages * pair_bytes,
                       lines = staging + multiplying_warps * staged_bytes,
                       barriers = lines + Lines * line_bytes;
  static constexpr std::size_t shared_bytes = alignment + barriers + 16 * (stages + items_ahead);
};

/// Places in turn, as their producer and each of their consumers go round them. Each has a barrier that it is
/// full, and one that its readers, a number of warps, are done with it.
template <int Count, int Bytes, int Readers>
class places {
 public:
  __device__ places(shared_address first, shared_address barriers) : first_(first), barriers_(barriers) {}

  __device__ void make(int fillers) const {
    for (int i = 0; i < Count; ++i) {
      make_barrier(barriers_ + 16 * i, fillers);
      make_barrier(barriers_ + 16 * i + 8, Readers);
    }
  }

  __device__ int number() const { return number_; }
  __device__ shared_address here() const { return first_ + number_ * Bytes; }
  /// The same for all lanes of a warp at once, in a register that they share: products ask for it there.
  __device__ shared_address here_for_warp() const {
    return first_ + __shfl_sync(0xffffffffu, number_, 0) * Bytes;
  }
  __device__ shared_address full() const { return barriers_ + 16 * number_; }
  __device__ void wait_until_full() const { wait(full(), parity_); }
  __device__ void wait_until_empty() const { wait(full() + 8, parity_ ^ 1); }
  __device__ void release() const {
    __syncwarp();
    if (first_of_warp()) arrive(full() + 8);
  }

  __device__ void advance() {
    if (++number_ < Count) return;
    number_ = 0;
    parity_ ^= 1;
  }
  /// What this warp has no use for.
  __device__ void pass(int count) {
    for (; count > 0; --count, advance()) {
      wait_until_full();
      release();
    }
  }

 private:
  shared_address first_, barriers_;
  int number_ = 0;
  unsigned parity_ = 0;
};

/// A number that is kept in a register and not worked out again in every iteration of a loop.
template <class T>
__device__ T kept(T x) {
  T y;
  asm volatile("mov.b32 %0, %1;" : "=r"(y) : "r"(x));
  return y;
}

/// A block's shared memory.
template <class Block>
struct attention_memory {
  using ring = places<Block::stages, pair_bytes, Block::multiplying_warps>;
  using item_places = places<items_ahead, Block::item_bytes, Block::multiplying_warps>;
  std::byte* bytes = aligned_shared();
  shared_address first = kept(address_of(bytes));

  __device__ ring stages() const { return {first + Block::first_stage, first + Block::barriers}; }
  __device__ item_places items() const { return {first, first + Block::barriers + 16 * Block::stages}; }
  __device__ std::byte* box(int item, int group, int which) const {
    return bytes + item * Block::item_bytes + group * Block::group_bytes + which * box_bytes;
  }
  __device__ std::byte* place(int warp) const { return bytes + Block::staging + warp * staged_bytes; }
  __device__ float2* line(int n) const {
    return reinterpret_cast<float2*>(bytes + Block::lines + n * line_bytes);
  }
  __device__ shared_address line_address(int n) const { return first + Block::lines + n * line_bytes; }
};

/// A tile of either, one behind the other.
__device__ inline void copy_pair(shared_address to, const CUtensorMap& first, const CUtensorMap& second,
                                 int row, int column, shared_address full) {
  copy_box(to, first, row, column, full);
  copy_box(to + box_bytes, second, row, column, full);
}

/// By one thread: of each item the tiles of queries, of dout where a group has two boxes, and then the keys
/// that they see, the first or the last of them first.
template <class Block, bool LastFirst, class Ring, class Items>
__device__ __forceinline__ void copy_queries(const attention_call& z, const attention_maps& of,
                                             attention_walk walk, Ring r, Items all) {
  for (attention_item x; walk.next(x); all.advance()) {
    const int count = min(Block::groups, z.query_tiles - x.tile), column = x.head * head_dim,
              key_column = x.head / z.heads_each * head_dim;
    all.wait_until_empty();
    arrive_expecting(all.full(), count * Block::group_bytes);
    for (int g = 0; g < count; ++g) {
      copy_box(all.here() + g * Block::group_bytes, of.q, z.query_row(x.row, x.tile + g), column, all.full());
      if constexpr (Block::boxes == 2)
        copy_box(all.here() + g * Block::group_bytes + box_bytes, of.dout, z.query_row(x.row, x.tile + g),
                 column, all.full());
    }
    const int keys = z.keys_seen(x, Block::groups);
    for (int j = LastFirst ? keys - 1 : 0; LastFirst ? j >= 0 : j < keys;
         j += LastFirst ? -1 : 1, r.advance()) {
      r.wait_until_empty();
      arrive_expecting(r.full(), pair_bytes);
      copy_pair(r.here(), of.k, of.v, z.key_row(x.row, j), key_column, r.full());
    }
  }
}

/// This warp's number among those that multiply, below 0 for the others: the same in all lanes, as the
/// compiler knows.
__device__ inline int multiplying_warp() {
  return __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x / warp_size), 0) - warps_of_group;
}

/// Where a thread's sums of a tile lie.
struct sums_place {
  int row = kept<int>(threadIdx.x / warp_size % warps_of_group * 16 + threadIdx.x % warp_size / 4),
      column = kept<int>(2 * (threadIdx.x % 4)), ahead = kept(column - row);
  __device__ int row_of(int i) const { return row + i / 2 % 2 * 8; }
  /// By how much the column's number is above the row's.
  __device__ int ahead_of(int i) const { return ahead + (i / 4 * 8 + i % 2 - i / 2 % 2 * 8); }
};

/// Where a tile on the diagonal has keys behind its queries.
__device__ __forceinline__ void hide_later_keys(narrow_sums& d, const sums_place& at, float as) {
#pragma unroll
  for (int i = 0; i < 32; ++i)
    if (at.ahead_of(i) > 0) d[i] = as;
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

/// d = a b^T of two boxes.
__device__ __forceinline__ void multiply_rows(narrow_sums& d, shared_address a, shared_address b) {
  constexpr int next = next_terms<major::sum>;
#pragma unroll
  for (int k = 0; k < head_dim / 16; ++k)
    multiply<major::sum, major::sum>(d, further(described(a), k * next), further(described(b), k * next),
                                     k > 0);
  commit_products();
}
__device__ __forceinline__ void multiply_rows(narrow_sums& d, const left_factor& a, shared_address b) {
#pragma unroll
  for (int k = 0; k < head_dim / 16; ++k)
    multiply<major::sum>(d, a + 4 * k, further(described(b), k * next_terms<major::sum>), k > 0);
  commit_products();
}
/// d = or += a b of a box.
__device__ __forceinline__ void multiply_columns(narrow_sums& d, const left_factor& a, shared_address b,
                                                 bool add) {
#pragma unroll
  for (int k = 0; k < box_side / 16; ++k)
    multiply<major::result>(d, a + 4 * k, further(described(b), k * next_terms<major::result>), add || k > 0);
  commit_products();
}

/// The products of a pair of tiles, with the next pair of a ring: p, which is ready, and dp, which is on its
/// way. What products read of the pair before has been read then.
template <class Factor, class Ring>
__device__ __forceinline__ void multiply_pair(narrow_sums& p, narrow_sums& dp, const Factor& of_p,
                                              const Factor& of_dp, const Ring& r, Ring& before,
                                              bool release_before) {
  r.wait_until_full();
  begin_products();
  multiply_rows(p, of_p, r.here());
  multiply_rows(dp, of_dp, r.here() + box_bytes);
  wait_for_products<1>();
  if (release_before) before.release();
  before = r;
  settle(p);
}

/// Store a warp's 16 rows of 64 sums times `factor`.
__device__ __forceinline__ void store_tile_rows(bf16* to, std::size_t stride, narrow_sums& d, float factor,
                                                std::byte* place) {
  const int lane = threadIdx.x % warp_size, row = lane / 8, column = lane % 8;
#pragma unroll
  for (float& x : d) x *= factor;
  __syncwarp();  // the sums that were here before have been stored
  stage_sums(place, d, 0, bf16{});
  __syncwarp();
#pragma unroll
  for (int i = 0; i < 4; ++i)
    store(to + (row + 4 * i) * stride + column * 8,
          load<bf16, 8>(reinterpret_cast<const bf16*>(place + piece(row + 4 * i, column))));
}

}  // namespace rankc::runtime::cuda::hopper
