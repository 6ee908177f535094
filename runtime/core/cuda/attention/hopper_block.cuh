// SPDX-License-Identifier: Apache-2.0
// The shared memory of a block that computes attention on Hopper's tensor cores, and its barriers. An item
// has one tile of 64 tokens of a head for each multiplying warpgroup. A producer warpgroup makes the copy
// engine load the item's tiles, and then, through stages, all tiles that these are multiplied with.
#pragma once
#include "hopper_sight.cuh"
#include "hopper_walk.cuh"

namespace rankc::runtime::cuda::hopper {

// Two f32 numbers for each token of a tile.
inline constexpr int line_bytes = box_side * static_cast<int>(sizeof(float2));

/// The layout of a block's shared memory. A tile has `Parts` boxes, of 64 columns of a head each. In order:
/// - `ItemsAhead` items, each with `Operands` tiles for each of `Groups` multiplying warpgroups.
/// - `Stages` stages of a pair of tiles.
/// - a staging place for each multiplying warp.
/// - `Lines` lines.
/// - for each tile of an item, the range of tiles that it is multiplied with.
/// - barriers.
template <int Parts, int Groups, int Operands, int Stages, int Lines, int ItemsAhead = 2>
struct attention_block {
  static constexpr int parts = Parts, groups = Groups, operands = Operands, stages = Stages,
                       items_ahead = ItemsAhead, multiplying_warps = groups * warps_of_group;
  static constexpr int threads = (groups + 1) * warps_of_group * warp_size;
  static constexpr int tile_bytes = Parts * box_bytes, pair_bytes = 2 * tile_bytes,
                       group_bytes = Operands * tile_bytes, item_bytes = groups * group_bytes;
  static constexpr int first_stage = items_ahead * item_bytes, staging = first_stage + stages * pair_bytes,
                       lines = staging + multiplying_warps * staged_bytes,
                       ranges = lines + Lines * line_bytes,
                       barriers = ranges + items_ahead * groups * static_cast<int>(sizeof(tile_range));
  static constexpr std::size_t shared_bytes = alignment + barriers + 16 * (stages + items_ahead);
  static_assert(shared_bytes <= 227 * 1024);
};

/// A ring of places, which a producer fills and consumers read in the same order. Each place has two
/// barriers: it is full, and `Readers` warps have read it.
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
  /// `here` in a register that all lanes of a warp share, as products need it.
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
  /// Releases the next `count` places, which this warp does not read.
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

/// A block's shared memory.
template <class Block>
struct attention_memory {
  using ring = places<Block::stages, Block::pair_bytes, Block::multiplying_warps>;
  using item_places = places<Block::items_ahead, Block::item_bytes, Block::multiplying_warps>;
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
  /// For each group's tile of an item, the range of tiles that it is multiplied with.
  __device__ tile_range* ranges(int item) const {
    return reinterpret_cast<tile_range*>(bytes + Block::ranges) + item * Block::groups;
  }
};

/// The range of tiles that a group's tile is multiplied with, and the union of these ranges over the tiles of
/// the item. The producer copies the union.
struct met_tiles {
  tile_range mine, all;
  __device__ int before() const { return mine.begin - all.begin; }
  __device__ int behind() const { return all.end - mine.end; }
};
/// `tiles`: the number of tiles that the item has. A group without a tile gets an empty range at the end, so
/// it passes all places at once.
__device__ inline met_tiles met_by(const tile_range* of, int group, int tiles) {
  const tile_range all{of[0].begin, of[tiles - 1].end};
  return {group < tiles ? of[group] : tile_range{all.end, all.end}, all};
}

}  // namespace rankc::runtime::cuda::hopper
