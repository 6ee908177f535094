// SPDX-License-Identifier: Apache-2.0
// The gradient's norm and AdamW over ranges of the regions, in f32 whatever the program's type. The ranges
// travel as a kernel parameter, so one launch does them all. The norm is summed in two stages of fixed order:
// every data-parallel rank clips by the same bits.
#include <rankc/runtime/cuda/kernels.hpp>

#include "device.cuh"

#include <algorithm>

namespace rankc::cuda {
namespace {

constexpr int block = 256, blocks_each = 4, grid = blocks_each * processors;  // all resident at once
constexpr int pack_size = 4, tile_start = 64;  // elements; tiles start at whole cache lines of f32 and bf16
constexpr int most_ranges = 1300;  // so that the table fits into the 32764 bytes of a kernel's parameters

/// Ranges cut into tiles, numbered one after another: those of range i end at tile `end[i]`.
struct range_table {
  std::uint64_t first[most_ranges], count[most_ranges];
  std::uint32_t end[most_ranges];
  std::uint32_t decay[(most_ranges + 31) / 32];  // a bit per range
  int ranges;
};
static_assert(sizeof(range_table) < 32764 - 128);

/// A tile begins at `element`, a multiple of tile_start; the range's elements are [first, limit).
struct tile_place {
  std::uint64_t element, first, limit;
  bool decay;
};

/// Call f(place) for every tile of the block, which are those of its number modulo the grid.
template <int Tile, class F>
__device__ void walk_tiles(const range_table& table, F&& f) {
  int i = 0;
  std::uint32_t begin = 0;  // of range i
  for (std::uint32_t tile = blockIdx.x;; tile += gridDim.x) {
    while (i < table.ranges && tile >= table.end[i]) begin = table.end[i++];
    if (i == table.ranges) return;
    const std::uint64_t first = table.first[i];
    f(tile_place{first / tile_start * tile_start + std::uint64_t{tile - begin} * Tile, first,
                 first + table.count[i], (table.decay[i / 32] >> (i % 32) & 1) != 0});
  }
}

constexpr int packs_squared = 4;  // that a thread loads at once

/// partial[b] = sum of squares of the elements of block b's tiles.
/// Shapes: partial f32 (grid), g f32 (region).
__global__ void __launch_bounds__(block, blocks_each)
    square_partials(float* partial, const float* g, const __grid_constant__ range_table table) {
  const bool aligned = reinterpret_cast<std::uintptr_t>(g) % sizeof(pack<float, pack_size>) == 0;
  float sum = 0.0f;
  walk_tiles<block * pack_size * packs_squared>(table, [&](const tile_place& place) {
    const std::uint64_t mine = place.element + threadIdx.x * pack_size;
    pack<float, pack_size> part[packs_squared];
#pragma unroll
    for (int p = 0; p < packs_squared; ++p) {
      const std::uint64_t e = mine + p * block * pack_size;
      if (aligned && e >= place.first && e + pack_size <= place.limit)
        part[p] = load<float, pack_size>(g + e);
      else
        for (int n = 0; n < pack_size; ++n)
          part[p].element[n] = e + n >= place.first && e + n < place.limit ? g[e + n] : 0.0f;
    }
#pragma unroll
    for (int p = 0; p < packs_squared; ++p)
      for (int n = 0; n < pack_size; ++n) sum += part[p].element[n] * part[p].element[n];
  });
  sum = block_sum(sum);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

/// total = or += sum of partial. One block.
__global__ void sum_squares_of(float* total, const float* partial, int partials, bool accumulate) {
  float sum = 0.0f;
  for (int i = threadIdx.x; i < partials; i += block) sum += partial[i];
  sum = block_sum(sum);
  if (threadIdx.x == 0) *total = (accumulate ? *total : 0.0f) + sum;
}

/// One element, as torch.optim.AdamW has it.
/// Source: Loshchilov and Hutter 2019.
__device__ void adamw_element(float& w, float g, float& m, float& v, const hyperparameters& h, float scale,
                              float keep) {
  g *= scale;
  m += h.new1 * (g - m);
  v = h.beta2 * v + h.new2 * g * g;
  w = w * keep - h.step_size * m / (sqrtf(v) * h.second_scale + h.eps);
}

/// Where the weights, gradients and moments are, and the working copy of the weights or null.
struct regions {
  float* w;
  const float* g;
  float *m, *v;
  bf16* copy;
};

/// Shapes: regions f32 and bf16 (region); norm_squared f32 (1).
template <bool Copy>
__global__ void __launch_bounds__(block, blocks_each)
    adamw_step(regions all, const float* norm_squared, const hyperparameters* input, bool aligned,
               const __grid_constant__ range_table table) {
  const hyperparameters h = *input;
  const float scale = h.clip > 0.0f ? fminf(1.0f, h.clip / (sqrtf(*norm_squared) + 1e-6f)) : 1.0f;
  walk_tiles<block * pack_size>(table, [&](const tile_place& place) {
    const float keep = place.decay ? h.keep : 1.0f;
    const std::uint64_t e = place.element + threadIdx.x * pack_size;
    if (aligned && e >= place.first && e + pack_size <= place.limit) {
      auto w = load<float, pack_size>(all.w + e);
      const auto g = load<float, pack_size>(all.g + e);
      auto m = load<float, pack_size>(all.m + e);
      auto v = load<float, pack_size>(all.v + e);
      for (int n = 0; n < pack_size; ++n)
        adamw_element(w.element[n], g.element[n], m.element[n], v.element[n], h, scale, keep);
      store(all.w + e, w);
      store(all.m + e, m);
      store(all.v + e, v);
      if constexpr (Copy) store(all.copy + e, packed<bf16>(w.element));
    } else {
      for (std::uint64_t n = max(e, place.first); n < min(e + pack_size, place.limit); ++n) {
        adamw_element(all.w[n], all.g[n], all.m[n], all.v[n], h, scale, keep);
        if constexpr (Copy) all.copy[n] = from_float<bf16>(all.w[n]);
      }
    }
  });
}

/// Call f(table) for as many ranges at a time as a table holds, cut into tiles of `tile` elements.
template <class F>
void for_tables(std::span<const range> ranges, std::size_t tile, F&& f) {
  for (std::size_t done = 0; done < ranges.size(); done += most_ranges) {
    const auto part = ranges.subspan(done, std::min(ranges.size() - done, std::size_t{most_ranges}));
    range_table table{};
    table.ranges = static_cast<int>(part.size());
    std::uint32_t end = 0;
    for (std::size_t i = 0; i < part.size(); ++i) {
      end += static_cast<std::uint32_t>(
          part[i].count == 0 ? 0 : ceil_div(part[i].first % tile_start + part[i].count, tile));
      table.first[i] = part[i].first;
      table.count[i] = part[i].count;
      table.end[i] = end;
      if (part[i].decay) table.decay[i / 32] |= 1u << (i % 32);
    }
    f(table);
  }
}

}  // namespace

template <class T>
void sum_squares(const lane& on, at total, at gradients, std::span<const range> ranges, bool accumulate) {
  float* partial = reinterpret_cast<float*>(on.workspace);
  int partials = 0;
  for_tables(ranges, block * pack_size * packs_squared, [&](const range_table& table) {
    launch(on, "sum_squares", square_partials, grid, block, 0, partial + partials, on.at<float>(gradients),
           table);
    partials += grid;
  });
  launch(on, "sum_squares", sum_squares_of, 1, block, 0, on.at<float>(total), partial, partials, accumulate);
}

template <class T>
void adamw(const lane& on, at weights, at gradients, at first_moment, at second_moment, at norm_squared,
           std::span<const range> ranges) {
  constexpr bool copies = sizeof(T) == 2;
  const regions all{on.at<float>(weights), on.at<float>(gradients), on.at<float>(first_moment),
                    on.at<float>(second_moment), copies ? on.at<bf16>(on.of->where->working_copy) : nullptr};
  const bool aligned = packable<pack_size>(pack_size, all.w, all.g, all.m, all.v, all.copy);
  for_tables(ranges, block * pack_size, [&](const range_table& table) {
    launch(on, "adamw", adamw_step<copies>, grid, block, 0, all, on.at<float>(norm_squared), on.of->input, aligned,
           table);
  });
}

template void sum_squares<float>(const lane&, at, at, std::span<const range>, bool);
template void sum_squares<bf16>(const lane&, at, at, std::span<const range>, bool);
template void adamw<float>(const lane&, at, at, at, at, at, std::span<const range>);
template void adamw<bf16>(const lane&, at, at, at, at, at, std::span<const range>);

}  // namespace rankc::cuda
