// SPDX-License-Identifier: Apache-2.0
// Grouped products on Hopper's tensor cores. As many blocks as there are processors go through the tiles; in each block one
// warp has the copy engine fill a ring of stages, and two warpgroups multiply what is in them, 64 x 256 sums each. They
// meet only in the ring, so that one stores its sums while the other still multiplies.
// Source: the design is CUTLASS's "warp-specialized persistent cooperative" kernel's.
#include "grouped_hopper.hpp"

#include "hopper.cuh"
#include "row_tiles.cuh"
#include "tensor_map.hpp"

#include <cstdint>

namespace rankc::cuda {
namespace {

using namespace hopper;

constexpr int tile_rows = 128, tile_columns = 256, tile_terms = box_side;
constexpr int a_boxes = tile_rows / box_side, b_boxes = tile_columns / box_side;
constexpr int stages = 4, stage_bytes = (a_boxes + b_boxes) * box_bytes;
constexpr int warpgroup = 128, multiplying_warps = 8, block = 3 * warpgroup;
constexpr int staged_bytes = 16 * 128;  // 16 rows of 128 bytes: what a warp stores at a time
constexpr int alignment = 1024;         // of boxes

/// Shared memory: the stages, two places for each multiplying warp to put sums in, the barriers.
constexpr int staging = stages * stage_bytes, barriers = staging + multiplying_warps * 2 * staged_bytes;
constexpr std::size_t shared_bytes = alignment + barriers + (2 * stages + 1) * sizeof(std::uint64_t);

__device__ std::byte* aligned_shared() {
  std::byte* raw = reinterpret_cast<std::byte*>(dynamic_shared());
  return raw + (alignment - __cvta_generic_to_shared(raw) % alignment) % alignment;
}

/// The stages in turn, as their producer and each of their consumers go round them.
class ring {
 public:
  __device__ explicit ring(const std::byte* shared) : shared_(static_cast<shared_address>(__cvta_generic_to_shared(shared))) {}

  __device__ void make() const {
    for (int s = 0; s < stages; ++s) {
      make_barrier(shared_ + barriers + 16 * s, 1);
      make_barrier(shared_ + barriers + 16 * s + 8, multiplying_warps);
    }
    make_barrier(landed(), 1);
    publish_barriers();
  }

  __device__ shared_address a() const { return shared_ + stage_ * stage_bytes; }
  __device__ shared_address b() const { return a() + a_boxes * box_bytes; }
  __device__ shared_address full() const { return shared_ + barriers + 16 * stage_; }
  __device__ shared_address empty() const { return full() + 8; }
  __device__ shared_address landed() const { return shared_ + barriers + 16 * stages; }
  __device__ void wait_until_full() const { wait(full(), parity_); }
  __device__ void wait_until_empty() const { wait(empty(), parity_ ^ 1); }
  __device__ void advance() {
    if (++stage_ < stages) return;
    stage_ = 0;
    parity_ ^= 1;
  }

 private:
  shared_address shared_;
  int stage_ = 0;
  unsigned parity_ = 0;
};

__device__ bool first_of_warp() { return threadIdx.x % warp_size == 0; }

/// d = a b over `blocks` stages, of whose rows this warpgroup takes the 64 of box `group`.
template <major A, major B>
__device__ __forceinline__ void multiply_stages(sums& d, ring& r, int blocks, int group) {
#pragma unroll
  for (float& x : d) x = 0.0f;
  shared_address before = 0;  // the last stage's `empty`
  for (int block = 0; block < blocks; ++block, r.advance()) {
    r.wait_until_full();
    const std::uint64_t a = described(r.a() + group * box_bytes), b = described(r.b());
    begin_products();
#pragma unroll
    for (int k = 0; k < tile_terms / 16; ++k) multiply<A, B>(d, a + k * next_terms<A>, b + k * next_terms<B>);
    commit_products();
    wait_for_products<1>();
    if (block > 0 && first_of_warp()) arrive(before);
    before = r.empty();
  }
  finish_products(d);
  if (blocks > 0 && first_of_warp()) arrive(before);
}

/// A warpgroup that has no rows in the tile.
__device__ void pass_stages(ring& r, int blocks) {
  for (int block = 0; block < blocks; ++block, r.advance()) {
    r.wait_until_full();
    if (first_of_warp()) arrive(r.empty());
  }
}

/// Where a piece of 16 bytes is put in a staged row: rows that are stored together meet in no bank.
__device__ int piece(int row, int column) { return row * 128 + ((column ^ ((row << 1 & 6) | (row >> 2 & 1))) << 4); }

/// Put a warp's sums of 128 bytes of columns, which begin in d[first], into its stage.
__device__ void stage_sums(std::byte* to, const sums& d, int first, bf16) {
  const int lane = threadIdx.x % warp_size, row = lane % 16, column = lane / 16;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    unsigned two[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const __nv_bfloat162 rounded = __floats2bfloat162_rn(d[first + 8 * i + 2 * j], d[first + 8 * i + 2 * j + 1]);
      two[j] = reinterpret_cast<const unsigned&>(rounded);
    }
    store_matrices(static_cast<shared_address>(__cvta_generic_to_shared(to + piece(row, 2 * i + column))), two[0], two[1],
                   two[2], two[3]);
  }
}
__device__ void stage_sums(std::byte* to, const sums& d, int first, float) {
  const int lane = threadIdx.x % warp_size, row = lane / 4, column = lane % 4;
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half)
      *reinterpret_cast<float2*>(to + piece(row + 8 * half, 2 * i + column / 2) + column % 2 * 8) =
          make_float2(d[first + 4 * i + 2 * half], d[first + 4 * i + 2 * half + 1]);
}

/// Store or add a warp's 16 x 256 sums, of which `rows` and `columns` count, in whole rows of 128 bytes.
template <bool Add, class C>
__device__ __forceinline__ void store_sums(C* to, std::size_t stride, const sums& d, int rows, int columns,
                                           std::byte* stages) {
  constexpr int width = 128 / sizeof(C);
  const int lane = threadIdx.x % warp_size, row = lane / 8, column = lane % 8;
  if (rows <= 0) return;
  to += row * stride + column * wide<C>;
#pragma unroll
  for (int pass = 0; pass < tile_columns / width; ++pass) {
    if (pass * width >= columns) return;
    pack<C, wide<C>> old[4];
    if constexpr (Add)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        if (row + 4 * i < rows) old[i] = load<C, wide<C>>(to + 4 * i * stride + pass * width);
    std::byte* stage = stages + pass % 2 * staged_bytes;
    stage_sums(stage, d, pass * width / 2, C{});
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (row + 4 * i >= rows) continue;
      pack<C, wide<C>> now = *reinterpret_cast<const pack<C, wide<C>>*>(stage + piece(row + 4 * i, column));
      if constexpr (Add)
        for (int n = 0; n < wide<C>; ++n) now.element[n] += old[i].element[n];
      store(to + 4 * i * stride + pass * width, now);
    }
  }
}

/// c[r] = a[r] b[e], where the copy engine's b is w (experts, columns, terms) or, with B = result, (experts, terms, columns).
struct rows_product {
  bf16* c;
  const int* offsets;
  int segments, experts, columns, terms;

  __device__ row_tiles<tile_rows> tiles() const {
    return {offsets, segments, (columns + tile_columns - 1) / tile_columns};
  }
};

template <major B>
__device__ void fill_stages(ring r, const CUtensorMap& a, const CUtensorMap& b, const rows_product& p) {
  auto tiles = p.tiles();
  row_tile at;
  for (int tile = blockIdx.x; tiles.find(tile, at); tile += gridDim.x) {
    const int expert = at.segment % p.experts, column = at.column * tile_columns;
    const int of_a = at.rows > box_side ? 2 : 1, of_b = min(b_boxes, (p.columns - column) / box_side);
    for (int k = 0; k < p.terms; k += tile_terms, r.advance()) {
      if (!first_of_warp()) continue;
      r.wait_until_empty();
      arrive_expecting(r.full(), (of_a + of_b) * box_bytes);
      for (int i = 0; i < of_a; ++i) copy_box(r.a() + i * box_bytes, a, at.row + i * box_side, k, r.full());
      for (int i = 0; i < of_b; ++i) {
        const int n = column + i * box_side;
        if constexpr (B == major::sum) copy_box(r.b() + i * box_bytes, b, expert * p.columns + n, k, r.full());
        else copy_box(r.b() + i * box_bytes, b, expert * p.terms + k, n, r.full());
      }
    }
  }
}

template <major B>
__global__ void __launch_bounds__(block, 1) multiply_rows(const __grid_constant__ CUtensorMap a,
                                                          const __grid_constant__ CUtensorMap b, rows_product p) {
  std::byte* shared = aligned_shared();
  ring r(shared);
  if (threadIdx.x == 0) r.make();
  __syncthreads();
  const int group = static_cast<int>(threadIdx.x / warpgroup) - 1, warp = threadIdx.x / warp_size % 4;
  if (group < 0) {
    give_back_registers<40>();
    if (warp == 0) fill_stages<B>(r, a, b, p);
  } else {
    take_registers<232>();
    auto tiles = p.tiles();
    row_tile at;
    for (int tile = blockIdx.x; tiles.find(tile, at); tile += gridDim.x) {
      const int blocks = p.terms / tile_terms, first = group * box_side, column = at.column * tile_columns;
      if (at.rows <= first) {
        pass_stages(r, blocks);
        continue;
      }
      sums d;
      multiply_stages<major::sum, B>(d, r, blocks, group);
      const int row = first + 16 * warp;
      store_sums<false>(p.c + static_cast<std::size_t>(at.row + row) * p.columns + column, p.columns, d, at.rows - row,
                        p.columns - column, shared + staging + (4 * group + warp) * 2 * staged_bytes);
    }
  }
}

/// dw[e] = or += dy^T x over the rows of expert e.
struct weights_product {
  float* dw;
  const int* offsets;
  int segments, experts, in, out;

  __device__ int tiles() const { return experts * row_tiles_each() * ((in + tile_columns - 1) / tile_columns); }
  __device__ int row_tiles_each() const { return (out + tile_rows - 1) / tile_rows; }

  struct place {
    int expert, row, column;
  };
  __device__ place of(int tile) const {
    const int each = tiles() / experts, within = tile % each;
    return {tile / each, within % row_tiles_each() * tile_rows, within / row_tiles_each() * tile_columns};
  }
  __device__ float* at(const place& t, int row) const {
    return dw + (static_cast<std::size_t>(t.expert) * out + t.row + row) * in + t.column;
  }

  /// Stages that the rows of an expert fill.
  __device__ int stages_of(int expert) const {
    int count = 0;
    for (int s = expert; s < segments; s += experts) count += (offsets[segments + s] - offsets[s] + tile_terms - 1) / tile_terms;
    return count;
  }
};

/// Rows of a stage from `rows` on become 0: they are another segment's.
__device__ void clear_rows(shared_address stage, int rows, int boxes_of_a, int boxes_of_b) {
  const int first = rows * 128 + threadIdx.x % warp_size * 16;
  for (int box = 0; box < a_boxes + b_boxes; ++box) {
    if (box < a_boxes ? box >= boxes_of_a : box - a_boxes >= boxes_of_b) continue;
    for (int at = first; at < box_bytes; at += warp_size * 16)
      asm volatile("st.shared.v4.b32 [%0], {%1, %1, %1, %1};" ::"r"(stage + box * box_bytes + at), "r"(0) : "memory");
  }
}

template <bool Add>
__device__ void fill_stages(ring r, const CUtensorMap& dy, const CUtensorMap& x, const weights_product& p) {
  unsigned landed = 0;
  for (int tile = blockIdx.x; tile < p.tiles(); tile += gridDim.x) {
    const auto at = p.of(tile);
    const int of_dy = min(a_boxes, (p.out - at.row) / box_side), of_x = min(b_boxes, (p.in - at.column) / box_side);
    if constexpr (Add)
      for (int row = threadIdx.x % warp_size; row < of_dy * box_side; row += warp_size)
        prefetch(p.at(at, row), of_x * box_side * static_cast<int>(sizeof(float)));
    for (int s = at.expert; s < p.segments; s += p.experts)
      for (int row = p.offsets[s], end = p.offsets[p.segments + s]; row < end; row += tile_terms, r.advance()) {
        const bool whole = end - row >= tile_terms;
        const shared_address done = whole ? r.full() : r.landed();
        if (first_of_warp()) {
          r.wait_until_empty();
          arrive_expecting(done, (of_dy + of_x) * box_bytes);
          for (int i = 0; i < of_dy; ++i) copy_box(r.a() + i * box_bytes, dy, row, at.row + i * box_side, done);
          for (int i = 0; i < of_x; ++i) copy_box(r.b() + i * box_bytes, x, row, at.column + i * box_side, done);
        }
        if (whole) continue;
        wait(done, landed);
        landed ^= 1;
        clear_rows(r.a(), end - row, of_dy, of_x);
        publish_stores();
        __syncwarp();
        if (first_of_warp()) arrive(r.full());
      }
  }
}

template <bool Add>
__global__ void __launch_bounds__(block, 1) multiply_columns(const __grid_constant__ CUtensorMap dy,
                                                             const __grid_constant__ CUtensorMap x, weights_product p) {
  std::byte* shared = aligned_shared();
  ring r(shared);
  if (threadIdx.x == 0) r.make();
  __syncthreads();
  const int group = static_cast<int>(threadIdx.x / warpgroup) - 1, warp = threadIdx.x / warp_size % 4;
  if (group < 0) {
    give_back_registers<40>();
    if (warp == 0) fill_stages<Add>(r, dy, x, p);
  } else {
    take_registers<232>();
    for (int tile = blockIdx.x; tile < p.tiles(); tile += gridDim.x) {
      const auto at = p.of(tile);
      const int blocks = p.stages_of(at.expert), row = group * box_side + 16 * warp;
      if (at.row + group * box_side >= p.out) {
        pass_stages(r, blocks);
        continue;
      }
      if (Add && blocks == 0) continue;
      sums d;
      multiply_stages<major::result, major::result>(d, r, blocks, group);
      store_sums<Add>(p.at(at, row), p.in, d, 16, p.in - at.column,
                      shared + staging + (4 * group + warp) * 2 * staged_bytes);
    }
  }
}

int attribute(const lane& on, cudaDeviceAttr which) {
  int device = 0, value = 0;
  check(on, cudaGetDevice(&device), "cudaGetDevice");
  check(on, cudaDeviceGetAttribute(&value, which, device), "cudaDeviceGetAttribute");
  return value;
}

std::size_t all_of(int experts, int each) { return static_cast<std::size_t>(experts) * each; }

}  // namespace

bool hopper_takes(const lane& on, const grouped_shape& s, const void* result, const void* a, const void* b) {
  return s.rows > 0 && s.in % box_side == 0 && s.out % box_side == 0 && packable<8>(0, static_cast<const bf16*>(result),
         static_cast<const bf16*>(a), static_cast<const bf16*>(b)) &&
         attribute(on, cudaDevAttrComputeCapabilityMajor) == 9 && attribute(on, cudaDevAttrComputeCapabilityMinor) == 0;
}

void hopper_linear(const lane& on, bf16* y, const bf16* x, const bf16* w, const int* offsets, const grouped_shape& s) {
  launch(on, "grouped_linear", multiply_rows<major::sum>, processors, block, shared_bytes,
         tensor_map(on, x, s.rows, s.in), tensor_map(on, w, all_of(s.experts, s.out), s.in),
         rows_product{y, offsets, s.segments, s.experts, s.out, s.in});
}

void hopper_linear_dx(const lane& on, bf16* dx, const bf16* dy, const bf16* w, const int* offsets,
                      const grouped_shape& s) {
  launch(on, "grouped_linear_dx", multiply_rows<major::result>, processors, block, shared_bytes,
         tensor_map(on, dy, s.rows, s.out), tensor_map(on, w, all_of(s.experts, s.out), s.in),
         rows_product{dx, offsets, s.segments, s.experts, s.in, s.out});
}

void hopper_linear_dw(const lane& on, float* dw, const bf16* dy, const bf16* x, const int* offsets,
                      const grouped_shape& s, bool accumulate) {
  launch(on, "grouped_linear_dw", accumulate ? multiply_columns<true> : multiply_columns<false>, processors, block,
         shared_bytes, tensor_map(on, dy, s.rows, s.out), tensor_map(on, x, s.rows, s.in),
         weights_product{dw, offsets, s.segments, s.experts, s.in, s.out});
}

}  // namespace rankc::cuda
