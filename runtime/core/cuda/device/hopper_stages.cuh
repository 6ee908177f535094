// SPDX-License-Identifier: Apache-2.0
// The stages in shared memory through which the copy engine feeds the tensor cores, and the path of sums from
// registers to device memory. Two blocks (a cluster) share the rows of a tile. Each block copies one half of
// the rows to both, and has its own 128 columns.
#pragma once
#include "hopper_rows.cuh"
#include "tensor_map.hpp"

namespace rankc::runtime::cuda::hopper {

inline constexpr int blocks_of_tile = 2;
inline constexpr int tile_rows = 128, columns_each = 128, tile_columns = blocks_of_tile * columns_each;
inline constexpr int tile_terms = box_side;
inline constexpr int a_boxes = tile_rows / box_side, b_boxes = columns_each / box_side;
inline constexpr int stages = 6, stage_bytes = (a_boxes + b_boxes) * box_bytes;
inline constexpr int multiplying_warps = 2 * warps_of_group;

/// Shared memory: the stages, two staging buffers for the sums of each multiplying warp, the barriers.
inline constexpr int staging = stages * stage_bytes,
                     barriers = staging + multiplying_warps * 2 * staged_bytes;
inline constexpr int turns = barriers + 3 * stages * 8;
inline constexpr std::size_t shared_bytes = alignment + turns + 2 * 8;

/// The ring of stages, as its producer and each of its consumers go through it. A stage is full when the copy
/// engine, or the warp that changes the copied data, has signalled it. It is empty when the consumers of both
/// blocks are done.
class ring {
 public:
  __device__ explicit ring(const std::byte* shared) : shared_(address_of(shared)) {}

  __device__ void make() const {
    for (ring r = *this; r.parity_ == 0; r.advance()) {
      make_barrier(r.full(), 1);
      make_barrier(r.empty(), blocks_of_tile * warps_of_group);
      make_barrier(r.landed(), 1);
    }
  }

  __device__ int stage() const { return stage_; }
  __device__ shared_address a() const { return shared_ + stage_ * stage_bytes; }
  __device__ shared_address b() const { return a() + a_boxes * box_bytes; }
  __device__ shared_address full() const { return shared_ + barriers + 24 * stage_; }
  __device__ shared_address empty() const { return full() + 8; }
  __device__ shared_address landed() const { return full() + 16; }
  __device__ void wait_until_full() const { wait(full(), parity_); }
  __device__ void wait_until_empty() const { wait(empty(), parity_ ^ 1); }

  __device__ void advance() {
    if (++stage_ < stages) return;
    stage_ = 0;
    parity_ ^= 1;
  }
  __device__ void skip(int by) {
    stage_ += by;
    parity_ ^= stage_ / stages & 1;
    stage_ %= stages;
  }

 private:
  shared_address shared_;
  int stage_ = 0;
  unsigned parity_ = 0;
};

/// The two warpgroups alternate. Each waits for its first stage until the other has seen its last one full.
/// The reason is that a barrier's parity distinguishes one round of the ring from the next, but not from the
/// one after that.
class turn {
 public:
  __device__ turn(const std::byte* shared, int group)
      : barriers_(address_of(shared) + turns), group_(group), parity_(group ^ 1) {}

  __device__ void make() const {
    make_barrier(barriers_, warps_of_group);
    make_barrier(barriers_ + 8, warps_of_group);
  }
  __device__ void take() {
    wait(barriers_ + 8 * group_, parity_);
    parity_ ^= 1;
  }
  __device__ void pass() const {
    if (first_of_warp()) arrive(barriers_ + 8 * (group_ ^ 1));
  }

 private:
  shared_address barriers_;
  int group_;
  unsigned parity_;
};

/// Signals to the barriers of both blocks that a warp is done with a stage.
__device__ inline void release(shared_address empty) {
  if (threadIdx.x % warp_size < blocks_of_tile) arrive_in(threadIdx.x % warp_size, empty);
}

/// d = a b over `blocks` stages, for the first `Halves` of the tile's two times 64 rows.
template <major A, major B, int Halves>
__device__ __forceinline__ void multiply_stages(sums (&d)[2], ring& r, int blocks, turn& mine) {
#pragma unroll
  for (int h = 0; h < Halves; ++h)
#pragma unroll
    for (float& x : d[h]) x = 0.0f;
  shared_address before = 0;  // `empty` of the previous stage
  mine.take();
  if (blocks == 0) mine.pass();
  for (int block = 0; block < blocks; ++block, r.advance()) {
    r.wait_until_full();
    if (block + 1 == blocks) mine.pass();  // while the tensor cores still have work
    const description a = described(r.a()), b = described(r.b());
    begin_products();
#pragma unroll
    for (int k = 0; k < tile_terms / 16; ++k)
#pragma unroll
      for (int h = 0; h < Halves; ++h)
        multiply<A, B>(d[h], further(a, h * box_bytes + k * next_terms<A>), further(b, k * next_terms<B>));
    commit_products();
    wait_for_products<1>();
    if (block > 0) release(before);
    before = r.empty();
  }
#pragma unroll
  for (int h = 0; h < Halves; ++h) finish_products(d[h]);
  if (blocks > 0) release(before);
}

/// Goes through the stages like multiply_stages, for a block without columns in the tile.
__device__ inline void pass_stages(ring& r, int blocks, turn& mine) {
  mine.take();
  for (int block = 0; block < blocks; ++block, r.advance()) {
    r.wait_until_full();
    release(r.empty());
  }
  mine.pass();
}

/// Writes a warp's sums for 128 bytes of columns, from d[first] on, to its stage.
__device__ inline void stage_sums(std::byte* to, const sums& d, int first, float) {
  const int lane = threadIdx.x % warp_size, row = lane / 4, column = lane % 4;
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half)
      *reinterpret_cast<float2*>(to + piece(row + 8 * half, 2 * i + column / 2) + column % 2 * 8) =
          make_float2(d[first + 4 * i + 2 * half], d[first + 4 * i + 2 * half + 1]);
}

/// to += numbers, with a reduction in memory.
__device__ inline void add_in_memory(float* to, const pack<float, 4>& numbers) {
  const float(&n)[4] = numbers.element;
  asm volatile("red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(n[0]), "f"(n[1]),
               "f"(n[2]), "f"(n[3])
               : "memory");
}
__device__ inline void add_in_memory(bf16* to, const pack<bf16, 8>& numbers) {
  const auto& n = reinterpret_cast<const uint4&>(numbers);
  asm volatile("red.relaxed.gpu.global.add.noftz.v4.bf16x2 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(n.x),
               "r"(n.y), "r"(n.z), "r"(n.w)
               : "memory");
}

/// Stores or adds the first `rows` and `columns` of a warp's 16 x 128 sums, in whole rows of 128 bytes.
/// Adding is a reduction in memory without a read. No other thread adds to these elements, so the order of
/// sums is fixed.
template <bool Add, class C>
__device__ __forceinline__ void store_sums(C* to, std::size_t stride, const sums& d, int rows, int columns,
                                           std::byte* places) {
  constexpr int width = 128 / sizeof(C);
  const int lane = threadIdx.x % warp_size, row = lane / 8, column = lane % 8;
  if (rows <= 0) return;
  to += row * stride + column * wide<C>;
  __syncwarp();  // the previous sums in these buffers have been stored
#pragma unroll
  for (int pass = 0; pass < columns_each / width; ++pass) {
    if (pass * width >= columns) return;
    std::byte* place = places + pass % 2 * staged_bytes;
    stage_sums(place, d, pass * width / 2, C{});
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (row + 4 * i >= rows) continue;
      const auto there = to + 4 * i * stride + pass * width;
      const auto sixteen_bytes =
          *reinterpret_cast<const pack<C, wide<C>>*>(place + piece(row + 4 * i, column));
      if constexpr (Add) add_in_memory(there, sixteen_bytes);
      else store(there, sixteen_bytes);
    }
  }
}

}  // namespace rankc::runtime::cuda::hopper
