// SPDX-License-Identifier: Apache-2.0
// The gradient norm, AdamW and SGD over ranges of the regions, in f32 for every program type. The ranges are
// a kernel parameter, so one launch processes them all. The norm is summed in two stages of fixed order, so
// every data-parallel rank clips by the same bits. With stochastic rounding there is a range for each tensor.
#include <rankc/runtime/cuda/kernels.hpp>

#include "../device/device.cuh"

#include <algorithm>

namespace rankc::runtime::cuda {
namespace {

constexpr int blocks_each = 4,
              grid = blocks_each * processors;  // for the norm: all resident at once
constexpr int pack_size = 4, tile_start = 64;   // elements; tiles start at whole cache lines of f32 and bf16

/// The number of ranges that fit into the 32764 bytes of a kernel's parameters.
template <rounding How>
constexpr int most_ranges = How == rounding::nearest ? 1300 : 700;

template <rounding How>
struct places_of_ranges {};
template <>
struct places_of_ranges<rounding::stochastic> {
  element_place place[most_ranges<rounding::stochastic>];
};

/// Ranges cut into tiles that are numbered consecutively. Those of range i end at tile `end[i]`.
template <rounding How>
struct range_table : places_of_ranges<How> {
  std::uint64_t first[most_ranges<How>], count[most_ranges<How>];
  std::uint32_t end[most_ranges<How>];
  std::uint32_t decay[(most_ranges<How> + 31) / 32];  // a bit per range
  int ranges;
};
static_assert(sizeof(range_table<rounding::nearest>) < 32764 - 128);
static_assert(sizeof(range_table<rounding::stochastic>) < 32764 - 128);

/// A tile starts at `element`, a multiple of tile_start. The elements of its range are [first, limit).
struct tile_place {
  std::uint64_t element, first, limit;
  bool decay;
  int range;
};

/// Tile `tile` of range i, whose first tile is `begin`.
template <int Tile, rounding How>
__device__ tile_place place_of(const range_table<How>& table, int i, std::uint32_t tile,
                               std::uint32_t begin) {
  const std::uint64_t first = table.first[i];
  return {first / tile_start * tile_start + std::uint64_t{tile - begin} * Tile, first, first + table.count[i],
          (table.decay[i / 32] >> (i % 32) & 1) != 0, i};
}

/// Calls f(place) for every tile of the block: the tiles whose number modulo the grid is the block's.
template <int Tile, rounding How, class F>
__device__ void walk_tiles(const range_table<How>& table, F&& f) {
  int i = 0;
  std::uint32_t begin = 0;  // first tile of range i
  for (std::uint32_t tile = blockIdx.x;; tile += gridDim.x) {
    while (i < table.ranges && tile >= table.end[i]) begin = table.end[i++];
    if (i == table.ranges) return;
    f(place_of<Tile>(table, i, tile, begin));
  }
}

/// The tile whose number is the block's.
template <int Tile, rounding How>
__device__ tile_place own_tile(const range_table<How>& table) {
  int before = -1, at = table.ranges - 1;  // the range is one of (before, at]
  while (at - before > 1) {
    const int middle = (before + at) / 2;
    (blockIdx.x < table.end[middle] ? at : before) = middle;
  }
  return place_of<Tile>(table, at, blockIdx.x, at > 0 ? table.end[at - 1] : 0);
}

constexpr int packs_squared = 4;  // loaded at once by a thread

/// partial[b] = sum of squares of the elements of block b's tiles.
/// Shapes: partial f32 (grid), g f32 (region).
__global__ void __launch_bounds__(block_size, blocks_each)
    square_partials(float* partial, const float* g,
                    const __grid_constant__ range_table<rounding::nearest> table) {
  const bool aligned = reinterpret_cast<std::uintptr_t>(g) % sizeof(pack<float, pack_size>) == 0;
  float sum = 0.0f;
  walk_tiles<block_size * pack_size * packs_squared>(table, [&](const tile_place& place) {
    const std::uint64_t mine = place.element + threadIdx.x * pack_size;
    pack<float, pack_size> part[packs_squared];
#pragma unroll
    for (int p = 0; p < packs_squared; ++p) {
      const std::uint64_t e = mine + p * block_size * pack_size;
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

/// total = or += sum of partial, by one block.
__global__ void sum_squares_of(float* total, const float* partial, int partials, bool accumulate) {
  float sum = 0.0f;
  for (int i = threadIdx.x; i < partials; i += block_size) sum += partial[i];
  sum = block_sum(sum);
  if (threadIdx.x == 0) *total = (accumulate ? *total : 0.0f) + sum;
}

/// The weights, gradients and moments, and the working copy of the weights or null.
template <class Weight, class Moment>
struct regions {
  Weight* w;
  const float* g;
  Moment *m, *v;
  bf16* copy;
};

template <class T>
__device__ T by_bits(float x, std::uint16_t bits) {
  if constexpr (sizeof(T) == 2) return __ushort_as_bfloat16(rounded_stochastically(x, bits).bits);
  else return x;
}

/// Reads, updates and writes `Count` neighbouring elements, as a pack if Count is its size. Element `e` of
/// the regions is element `place[e - first]` of its tensor.
template <class Rule, bool Copy, rounding How, int Count, class Weight, class Moment>
__device__ void update_elements(const regions<Weight, Moment>& all, std::uint64_t e, const tile_place& tile,
                                const range_table<How>& table, const hyperparameters& h, float scale) {
  auto w = load<Weight, Count>(all.w + e);
  const auto g = load<float, Count>(all.g + e);
  pack<Moment, Count> m{}, v{};
  if constexpr (Rule::moments > 0) m = load<Moment, Count>(all.m + e);
  if constexpr (Rule::moments > 1) v = load<Moment, Count>(all.v + e);
  float new_w[Count], new_m[Count], new_v[Count];
  unpack(new_w, w);
  unpack(new_m, m);
  unpack(new_v, v);
  for (int n = 0; n < Count; ++n)
    Rule::update(new_w[n], g.element[n] * scale, new_m[n], new_v[n], h, tile.decay);
  if constexpr (How == rounding::stochastic) {
    const element_place& place = table.place[tile.range];
    bits_of_elements random(place.tensor, h.rounding_seed, h.step);
    for (int n = 0; n < Count; ++n) {
      const element_bits bits = random[place[e + n - tile.first]];
      w.element[n] = by_bits<Weight>(new_w[n], bits.weight);
      m.element[n] = by_bits<Moment>(new_m[n], bits.first_moment);
      v.element[n] = by_bits<Moment>(new_v[n], bits.second_moment);
    }
  } else {
    w = packed<Weight>(new_w);
    m = packed<Moment>(new_m);
    v = packed<Moment>(new_v);
  }
  store(all.w + e, w);
  if constexpr (Rule::moments > 0) store(all.m + e, m);
  if constexpr (Rule::moments > 1) store(all.v + e, v);
  if constexpr (Copy) store(all.copy + e, packed<bf16>(new_w));
}

/// Each block updates one tile. Blocks that start and end keep reads and writes mixed, which gives 6 % more
/// of an H200's bandwidth than persistent blocks.
/// Shapes: regions (region); norm_squared f32 (1).
template <class Rule, bool Copy, rounding How, class Weight, class Moment>
__global__ void __launch_bounds__(block_size, blocks_each)
    update_step(regions<Weight, Moment> all, const float* norm_squared, const hyperparameters* input,
                bool aligned, const __grid_constant__ range_table<How> table) {
  if (!isfinite(*norm_squared)) return;  // the same on all ranks, which have the same norm
  const hyperparameters h = *input;
  const float scale = h.clip > 0.0f ? fminf(1.0f, h.clip / (sqrtf(*norm_squared) + 1e-6f)) : 1.0f;
  const tile_place tile = own_tile<block_size * pack_size>(table);
  const std::uint64_t e = tile.element + threadIdx.x * pack_size;
  if (aligned && e >= tile.first && e + pack_size <= tile.limit)
    update_elements<Rule, Copy, How, pack_size>(all, e, tile, table, h, scale);
  else
    for (std::uint64_t n = max(e, tile.first); n < min(e + pack_size, tile.limit); ++n)
      update_elements<Rule, Copy, How, 1>(all, n, tile, table, h, scale);
}

/// Updates the biases of expert scores by how often each expert was chosen.
template <class Weight, class Moment>
__global__ void __launch_bounds__(block_size)
    balance_step(regions<Weight, Moment> all, const float* norm_squared, std::uint64_t first,
                 std::uint64_t count, float rate, float mean) {
  const std::uint64_t n = std::uint64_t{blockIdx.x} * block_size + threadIdx.x, e = first + n;
  if (n >= count || !isfinite(*norm_squared)) return;
  const auto w = load<Weight, 1>(all.w + e);
  float bias[1];
  unpack(bias, w);
  bias[0] = runtime::balanced(bias[0], all.g[e], rate, mean);
  store(all.w + e, packed<Weight>(bias));
  if (all.copy) store(all.copy + e, packed<bf16>(bias));
}

/// Builds as many tables of ranges as are needed, cut into tiles of `tile` elements.
template <rounding How, class F>
class table_maker {
 public:
  table_maker(std::size_t tile, F& f) : tile_(tile), f_(f) {}

  void add(const range& of, const element_place& place = {}) {
    if (table_.ranges == most_ranges<How>) finish();
    const int i = table_.ranges++;
    end_ += static_cast<std::uint32_t>(of.count == 0 ? 0 : ceil_div(of.first % tile_start + of.count, tile_));
    table_.first[i] = of.first;
    table_.count[i] = of.count;
    table_.end[i] = end_;
    if (of.decay) table_.decay[i / 32] |= 1u << (i % 32);
    if constexpr (How == rounding::stochastic) table_.place[i] = place;
  }
  void finish() {
    if (table_.ranges > 0) f_(table_);
    table_ = {};
    end_ = 0;
  }

 private:
  const std::size_t tile_;
  F& f_;
  range_table<How> table_{};
  std::uint32_t end_ = 0;
};

/// Calls f(table) for as many ranges at a time as a table holds. With stochastic rounding it splits the
/// ranges by tensor.
template <rounding How, class F>
void for_tables(const rank& r, std::span<const range> ranges, std::size_t tile, F&& f) {
  table_maker<How, F> tables(tile, f);
  if constexpr (How == rounding::stochastic)
    for_each_tensor(r, ranges, [&](const range& of, const element_place& place) {
      if (!of.balances.any()) tables.add(of, place);
    });
  else
    for (const range& of : ranges)
      if (!of.balances.any()) tables.add(of);
  tables.finish();
}

template <class Rule, class T, class Weight, class Moment, rounding How>
void update(const lane& on, const char* name, const regions<Weight, Moment>& all, at norm_squared,
            std::span<const range> ranges) {
  constexpr bool copies = sizeof(Weight) > sizeof(T);
  const bool aligned = packable<pack_size>(pack_size, all.w, all.g, all.m, all.v, all.copy);
  for_tables<How>(*on.of, ranges, block_size * pack_size, [&](const range_table<How>& table) {
    launch(on, name, update_step<Rule, copies, How, Weight, Moment>, table.end[table.ranges - 1], block_size,
           0, all, on.at<float>(norm_squared), on.of->input, aligned, table);
  });
  for (const range& of : ranges)
    if (of.balances.any())
      launch(on, name, balance_step<Weight, Moment>, ceil_div(of.count, block_size), block_size, 0, all,
             on.at<float>(norm_squared), of.first, of.count, static_cast<float>(of.balances.rate),
             static_cast<float>(of.balances.mean));
}

template <class T, class Weight>
bf16* working_copy_of(const lane& on) {
  return sizeof(Weight) > sizeof(T) ? on.at<bf16>(on.of->where->working_copy) : nullptr;
}

}  // namespace

template <class T>
void sum_squares(const lane& on, at total, at gradients, std::span<const range> ranges, bool accumulate) {
  float* partial = reinterpret_cast<float*>(on.workspace);
  int partials = 0;
  for_tables<rounding::nearest>(*on.of, ranges, block_size * pack_size * packs_squared,
                                [&](const range_table<rounding::nearest>& table) {
                                  launch(on, "sum_squares", square_partials, grid, block_size, 0,
                                         partial + partials, on.at<float>(gradients), table);
                                  partials += grid;
                                });
  launch(on, "sum_squares", sum_squares_of, 1, block_size, 0, on.at<float>(total), partial, partials,
         accumulate);
}

template <class T, class Weight, class Moment, rounding How>
void adamw(const lane& on, at weights, at gradients, at first_moment, at second_moment, at norm_squared,
           std::span<const range> ranges) {
  const regions<Weight, Moment> all{on.at<Weight>(weights), on.at<float>(gradients),
                                    on.at<Moment>(first_moment), on.at<Moment>(second_moment),
                                    working_copy_of<T, Weight>(on)};
  update<adamw_rule, T, Weight, Moment, How>(on, "adamw", all, norm_squared, ranges);
}

template <class T, class Weight, class Moment, rounding How>
void sgd(const lane& on, at weights, at gradients, at momentum, at norm_squared,
         std::span<const range> ranges) {
  constexpr bool has_momentum = !std::is_same_v<Moment, no_moment>;
  using kept = std::conditional_t<has_momentum, Moment, float>;
  const regions<Weight, kept> all{on.at<Weight>(weights), on.at<float>(gradients),
                                  has_momentum ? on.at<kept>(momentum) : nullptr, nullptr,
                                  working_copy_of<T, Weight>(on)};
  update<sgd_rule<has_momentum>, T, Weight, kept, How>(on, "sgd", all, norm_squared, ranges);
}

template void sum_squares<float>(const lane&, at, at, std::span<const range>, bool);
template void sum_squares<bf16>(const lane&, at, at, std::span<const range>, bool);

// The types of weights and moments, and their rounding.
#define RANKC_BF16_MOMENTS(T, Weight, How)                                                            \
  template void adamw<T, Weight, bf16, How>(const lane&, at, at, at, at, at, std::span<const range>); \
  template void sgd<T, Weight, bf16, How>(const lane&, at, at, at, at, std::span<const range>);
#define RANKC_ALL_MOMENTS(T, Weight, How)                                                              \
  RANKC_BF16_MOMENTS(T, Weight, How)                                                                   \
  template void adamw<T, Weight, float, How>(const lane&, at, at, at, at, at, std::span<const range>); \
  template void sgd<T, Weight, no_moment, How>(const lane&, at, at, at, at, std::span<const range>);   \
  template void sgd<T, Weight, float, How>(const lane&, at, at, at, at, std::span<const range>);
RANKC_ALL_MOMENTS(float, float, rounding::nearest)
RANKC_ALL_MOMENTS(bf16, float, rounding::nearest)
RANKC_BF16_MOMENTS(float, float, rounding::stochastic)
RANKC_BF16_MOMENTS(bf16, float, rounding::stochastic)
RANKC_ALL_MOMENTS(bf16, bf16, rounding::stochastic)
#undef RANKC_ALL_MOMENTS
#undef RANKC_BF16_MOMENTS

}  // namespace rankc::runtime::cuda
