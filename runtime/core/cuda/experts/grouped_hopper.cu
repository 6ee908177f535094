// SPDX-License-Identifier: Apache-2.0
// Grouped GEMMs on Hopper's tensor cores. One block for each multiprocessor goes through the tiles, in pairs.
// In each block one warp makes the copy engine fill stages, another zeroes foreign rows, and two warpgroups
// alternate: one stores its sums while the other multiplies.
// Source: the design is that of CUTLASS's "warp-specialized persistent ping-pong" kernel.
#include "grouped_hopper.hpp"

#include "../device/hopper_stages.cuh"
#include "row_tiles.cuh"

namespace rankc::runtime::cuda {
namespace {

using namespace hopper;

constexpr int warpgroup = warps_of_group * warp_size, block = 3 * warpgroup;

/// A tile of a block. `rows` and `columns` of its sums are stored. Both factors have `stages` stages of
/// terms.
struct tile {
  int expert, row, column;  // its first sums in the result, or in the expert's part of the result
  int rows, columns, stages;
};

__device__ int first_column(int column_tile) {
  return column_tile * tile_columns + place_in_cluster() * columns_each;
}

struct box_place {
  int row, column;
};

/// Starts the copies of a stage's boxes: this block's half of a, to both blocks, and its own columns of b. If
/// a tile ends before the boxes do, they contain the data that follows; those sums are not stored.
__device__ __forceinline__ void copy_stage(const ring& r, const CUtensorMap& a, box_place of_a,
                                           const CUtensorMap& b, box_place of_b, box_place next_of_b,
                                           shared_address done) {
  arrive_expecting(done, stage_bytes);
  copy_box_to_both(r.a() + place_in_cluster() * box_bytes, a, of_a.row, of_a.column, done);
  copy_box(r.b(), b, of_b.row, of_b.column, done);
  copy_box(r.b() + box_bytes, b, of_b.row + next_of_b.row, of_b.column + next_of_b.column, done);
}

/// The tensor maps of the factors of a GEMM, or of several GEMMs that are added up.
template <int Factors>
struct factor_maps {
  CUtensorMap a[Factors], b[Factors];
};

/// c[r] = or += a[r] b[e], summed over pairs of factors.
/// Shapes: a (rows, terms), c (rows, columns), b (experts, columns, terms) or, with B = result, (experts,
/// terms, columns).
template <major B, int Factors = 1, bool Add = false>
struct rows_product {
  static constexpr major a_major = major::sum, b_major = B;
  static constexpr bool adds = Add;
  static constexpr int factors = Factors;
  bf16* c;
  const int* offsets;
  int segments, experts, columns, terms;

  class walk {
   public:
    __device__ explicit walk(const rows_product& p)
        : of_(p), places_(p.offsets, p.segments, (p.columns + tile_columns - 1) / tile_columns) {}
    __device__ bool find(int number, tile& t) {
      row_tile at;
      if (!places_.find(number, at)) return false;
      const int column = first_column(at.column);
      t = {at.segment % of_.experts,          at.row, column, at.rows, of_.columns - column,
           Factors * (of_.terms / tile_terms)};
      return true;
    }

   private:
    const rows_product& of_;
    row_tiles<tile_rows> places_;
  };

  __device__ bf16* at(const tile& t, int row) const {
    return c + static_cast<std::size_t>(t.row + row) * columns + t.column;
  }
  __device__ std::size_t stride() const { return columns; }

  /// A whole warp calls it; one thread issues the copies.
  __device__ void fill(ring& r, const factor_maps<Factors>& of, const tile& t) {
    const int row = t.row + place_in_cluster() * box_side;
    for (int f = 0; f < Factors; ++f)
      for (int k = 0; k < terms; k += tile_terms, r.advance()) {
        r.wait_until_empty();
        if (!elected()) continue;
        if constexpr (B == major::sum)
          copy_stage(r, of.a[f], {row, k}, of.b[f], {t.expert * columns + t.column, k}, {box_side, 0},
                     r.full());
        else
          copy_stage(r, of.a[f], {row, k}, of.b[f], {t.expert * terms + k, t.column}, {0, box_side},
                     r.full());
      }
  }

  /// Nothing to do: sums from rows of another segment are not stored.
  __device__ void finish(ring&, const tile&) const {}
};

/// Zeroes the rows of a stage's boxes from `rows` on.
__device__ void clear_rows(const ring& r, int rows) {
  const int first = rows * 128 + threadIdx.x % warp_size * 16;
  for (int box = 0; box < a_boxes + b_boxes; ++box)
    for (int at = first; at < box_bytes; at += warp_size * 16) clear_piece(r.a() + box * box_bytes + at);
  publish_stores();
}

/// dw[e] = or += dy^T x over the rows of expert e.
/// Shapes: dy (rows, out), x (rows, in), dw (experts, out, in).
template <bool Add>
struct weights_product {
  static constexpr major a_major = major::result, b_major = major::result;
  static constexpr bool adds = Add;
  static constexpr int factors = 1;
  float* dw;
  const int* offsets;
  int segments, experts, in, out;
  unsigned landed = 0;  // the parity of each stage's `landed` barrier

  class walk {
   public:
    __device__ explicit walk(const weights_product& p) : of_(p) {}
    __device__ bool find(int number, tile& t) const {
      const int down = (of_.out + tile_rows - 1) / tile_rows,
                each = down * ((of_.in + tile_columns - 1) / tile_columns);
      if (number >= of_.experts * each) return false;
      const int expert = number / each, within = number % each;
      const int row = within % down * tile_rows, column = first_column(within / down);
      t = {expert, row, column, min(tile_rows, of_.out - row), of_.in - column, of_.stages_of(expert)};
      return true;
    }

   private:
    const weights_product& of_;
  };

  __device__ int stages_of(int expert) const {
    int count = 0;
    for (int s = expert; s < segments; s += experts)
      count += (offsets[segments + s] - offsets[s] + tile_terms - 1) / tile_terms;
    return count;
  }
  __device__ float* at(const tile& t, int row) const {
    return dw + (static_cast<std::size_t>(t.expert) * out + t.row + row) * in + t.column;
  }
  __device__ std::size_t stride() const { return in; }

  /// A whole warp calls it; one thread issues the copies.
  __device__ void fill(ring& r, const factor_maps<1>& of, const tile& t) {
    const int column = t.row + place_in_cluster() * box_side;
    for (int s = t.expert; s < segments; s += experts)
      for (int row = offsets[s], end = offsets[segments + s]; row < end; row += tile_terms, r.advance()) {
        r.wait_until_empty();
        if (elected())
          copy_stage(r, of.a[0], {row, column}, of.b[0], {row, t.column}, {0, box_side},
                     end - row < tile_terms ? r.landed() : r.full());
      }
  }

  /// The work of another warp: if a segment ends within a stage, it zeroes the other rows after they have
  /// landed.
  __device__ void finish(ring& r, const tile& t) {
    for (int s = t.expert; s < segments; s += experts) {
      const int count = offsets[segments + s] - offsets[s], rest = count % tile_terms;
      r.skip(count / tile_terms);
      if (rest == 0) continue;
      wait(r.landed(), landed >> r.stage() & 1);
      landed ^= 1u << r.stage();
      clear_rows(r, rest);
      __syncwarp();
      if (elected()) arrive(r.full());
      r.advance();
    }
  }
};

/// Multiplies a tile and stores its sums, with one warpgroup.
template <class Product>
__device__ __forceinline__ void finish_tile(ring& r, turn& mine, const Product& p, const tile& t,
                                            std::byte* places) {
  constexpr major a = Product::a_major, b = Product::b_major;
  if (t.columns <= 0 || (Product::adds && t.stages == 0)) return pass_stages(r, t.stages, mine);
  sums d[2];
  if (t.rows > box_side) multiply_stages<a, b, 2>(d, r, t.stages, mine);
  else multiply_stages<a, b, 1>(d, r, t.stages, mine);
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int row = h * box_side + 16 * (threadIdx.x / warp_size % warps_of_group);
    store_sums<Product::adds>(p.at(t, row), p.stride(), d[h], t.rows - row, t.columns, places);
  }
}

template <class Product>
__global__ void __cluster_dims__(blocks_of_tile) __launch_bounds__(block, 1)
    multiply(const __grid_constant__ factor_maps<Product::factors> of, Product p) {
  std::byte* shared = aligned_shared();
  ring r(shared);
  const int first = blockIdx.x / blocks_of_tile, every = gridDim.x / blocks_of_tile;
  const int warp =
      static_cast<int>(threadIdx.x / warp_size) - warps_of_group;  // below 0: warps that do not multiply
  turn mine(shared, warp / warps_of_group);
  if (threadIdx.x == 0) {
    r.make();
    mine.make();
    publish_barriers();
  }
  meet_in_cluster();
  typename Product::walk tiles(p);
  tile t;
  if (warp < 0) {
    give_back_registers<40>();
    if (warp == -warps_of_group)
      for (int n = first; tiles.find(n, t); n += every) p.fill(r, of, t);
    else if (warp == 1 - warps_of_group)
      for (int n = first; tiles.find(n, t); n += every) p.finish(r, t);
  } else {
    take_registers<232>();
    bool others = warp >= warps_of_group;
    for (int n = first; tiles.find(n, t); n += every, others = !others)
      if (others) r.skip(t.stages);
      else finish_tile(r, mine, p, t, shared + staging + warp * 2 * staged_bytes);
  }
  meet_in_cluster();  // a block's shared memory must exist until the other block is done with it
}

bool at_sixteen_bytes(const void* p) { return reinterpret_cast<std::uintptr_t>(p) % 16 == 0; }

static_assert(processors % blocks_of_tile == 0);

template <class Product>
void run(const lane& on, const char* name, const factor_maps<Product::factors>& of, const Product& p) {
  launch(on, name, multiply<Product>, processors, block, shared_bytes, of, p);
}

CUtensorMap rows_of(const lane& on, const bf16* x, const grouped_shape& s) {
  return tensor_map(on, x, s.rows, s.in);
}
CUtensorMap weights_of(const lane& on, const bf16* w, const grouped_shape& s) {
  return tensor_map(on, w, std::size_t{1} * s.experts * s.out, s.in);
}

}  // namespace

bool hopper_takes(const lane& on, const grouped_shape& s, const void* result, const void* a, const void* b) {
  return s.rows > 0 && s.in % box_side == 0 && s.out % box_side == 0 && at_sixteen_bytes(result) &&
         at_sixteen_bytes(a) && at_sixteen_bytes(b) && is_hopper(on);
}

void hopper_linear(const lane& on, bf16* y, const bf16* x, const bf16* w, const int* offsets,
                   const grouped_shape& s) {
  run(on, "grouped_linear", {{rows_of(on, x, s)}, {weights_of(on, w, s)}},
      rows_product<major::sum>{y, offsets, s.segments, s.experts, s.out, s.in});
}
void hopper_linear_add(const lane& on, bf16* y, const bf16* x, const bf16* w, const int* offsets,
                       const grouped_shape& s) {
  run(on, "grouped_linear_add", {{rows_of(on, x, s)}, {weights_of(on, w, s)}},
      rows_product<major::sum, 1, true>{y, offsets, s.segments, s.experts, s.out, s.in});
}
void hopper_linear_two(const lane& on, bf16* y, const bf16* x, const bf16* w, const bf16* x2, const bf16* w2,
                       const int* offsets, const grouped_shape& s) {
  run(on, "grouped_linear_two",
      {{rows_of(on, x, s), rows_of(on, x2, s)}, {weights_of(on, w, s), weights_of(on, w2, s)}},
      rows_product<major::sum, 2>{y, offsets, s.segments, s.experts, s.out, s.in});
}

void hopper_linear_dx(const lane& on, bf16* dx, const bf16* dy, const bf16* w, const int* offsets,
                      const grouped_shape& s) {
  run(on, "grouped_linear_dx", {{tensor_map(on, dy, s.rows, s.out)}, {weights_of(on, w, s)}},
      rows_product<major::result>{dx, offsets, s.segments, s.experts, s.in, s.out});
}

void hopper_linear_dw(const lane& on, float* dw, const bf16* dy, const bf16* x, const int* offsets,
                      const grouped_shape& s, bool accumulate) {
  const factor_maps<1> of{{tensor_map(on, dy, s.rows, s.out)}, {rows_of(on, x, s)}};
  if (accumulate)
    run(on, "grouped_linear_dw", of, weights_product<true>{dw, offsets, s.segments, s.experts, s.in, s.out});
  else
    run(on, "grouped_linear_dw", of, weights_product<false>{dw, offsets, s.segments, s.experts, s.in, s.out});
}

}  // namespace rankc::runtime::cuda
