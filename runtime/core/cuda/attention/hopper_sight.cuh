// SPDX-License-Identifier: Apache-2.0
// The keys that a tile of queries sees, and the queries that see a tile of keys. A tile has 64 tokens.
#pragma once
#include "../device/hopper_rows.cuh"
#include "../device/tensor_map.hpp"

#include <rankc/runtime/ring_step.hpp>

#include <cstdint>

namespace rankc::runtime::cuda::hopper {

/// The tiles from `begin` up to `end`, which is excluded.
struct tile_range {
  int begin, end;
  __device__ int count() const { return end - begin; }
};

/// The position of a thread's sums in a tile of 64 x 64.
struct sums_place {
  int row, column, ahead;
  __device__ sums_place();
  __device__ int row_of(int i) const { return row + i / 2 % 2 * 8; }
  __device__ int column_of(int i) const { return column + i / 4 * 8 + i % 2; }
  /// The column's index minus the row's.
  __device__ int ahead_of(int i) const { return ahead + (i / 4 * 8 + i % 2 - i / 2 % 2 * 8); }
};

/// Keeps a number in a register, so that it is not recomputed in every iteration of a loop.
template <class T>
__device__ T kept(T x) {
  T y;
  if constexpr (sizeof(T) == 8) asm volatile("mov.b64 %0, %1;" : "=l"(y) : "l"(x));
  else asm volatile("mov.b32 %0, %1;" : "=r"(y) : "r"(x));
  return y;
}

__device__ inline sums_place::sums_place()
    : row(kept<int>(threadIdx.x / warp_size % warps_of_group * 16 + threadIdx.x % warp_size / 4)),
      column(kept<int>(2 * (threadIdx.x % 4))),
      ahead(kept(column - row)) {}

/// Hides the keys after their queries, in a tile on the diagonal.
__device__ __forceinline__ void hide_later_keys(narrow_sums& d, const sums_place& at, float as) {
#pragma unroll
  for (int i = 0; i < 32; ++i)
    if (at.ahead_of(i) > 0) d[i] = as;
}

/// Queries see all keys or, with `causal`, the keys up to themselves.
struct plain_sight {
  static constexpr bool masked = false;
  int query_tiles, key_tiles, keys_apart;  // keys_apart: tokens from one row to the next
  bool causal;

  __device__ int key_row(int row, int tile) const { return row * keys_apart + tile * box_side; }
  __device__ tile_range keys_of(int, int tile) const {
    return {0, causal ? min(tile + 1, key_tiles) : key_tiles};
  }
  __device__ tile_range queries_of(int, int tile) const { return {causal ? tile : 0, query_tiles}; }

  /// The keys that the rows of a tile of queries see.
  struct rows {
    const plain_sight& of;
    int tile;
    __device__ __forceinline__ void hide(narrow_sums& d, const sums_place& at, int keys, float as) const {
      if (of.causal && keys == tile) hide_later_keys(d, at, as);
    }
    /// Hides the keys in the last tile of keys.
    __device__ __forceinline__ void hide_in_last(narrow_sums& d, const sums_place& at, int) const {
      if (of.causal) hide_later_keys(d, at, -INFINITY);
    }
  };
  __device__ rows rows_of(int, int tile, const sums_place&) const { return {*this, tile}; }
  __device__ static constexpr bool has_starts() { return false; }
  __device__ static constexpr const std::int32_t* starts_of(int, int) { return nullptr; }
  /// Hides keys, which are the rows of `d`, from queries, which are its columns.
  __device__ __forceinline__ void hide_rows(narrow_sums& d, const sums_place& at, int queries, int keys,
                                            const void*) const {
    if (!causal || queries != keys) return;
#pragma unroll
    for (int i = 0; i < 32; ++i)
      if (at.ahead_of(i) < 0) d[i] = 0.0f;
  }
};

/// Causal attention of whole sequences or of a rank's chunks. A query sees no key before its document or its
/// window. Tiles are numbered in the order of their positions.
/// Shapes: starts (rows, seq): the position at which each token's document begins, or null without documents.
struct masked_sight {
  static constexpr bool masked = true, causal = true;
  const std::int32_t* starts;
  int window;               // tokens; 0: no window
  runtime::chunks queries;  // the rank's chunks of each sequence
  // With `gathered`, the chunks of the queries' rank, and the keys are those of all ranks. Else the chunks of
  // the rank whose keys these are.
  runtime::chunks keys;
  bool gathered;
  int sequences, query_tiles, key_tiles;

  __device__ int key_position(int tile) const {
    return gathered ? tile * box_side : keys.position(tile * box_side);
  }
  __device__ int keys_before(int position) const { return gathered ? position : keys.count_before(position); }
  __device__ int key_row(int row, int tile) const {
    const int token = tile * box_side;
    return gathered ? keys.gathered_row(token, row, sequences) : row * keys.count() + token;
  }
  __device__ bool has_starts() const { return starts != nullptr; }
  /// The starts of the documents of a tile of queries.
  __device__ const std::int32_t* starts_of(int row, int tile) const {
    return starts + static_cast<std::size_t>(row) * queries.seq + queries.position(tile * box_side);
  }
  /// The position of the first key that a query sees, given where its document begins.
  __device__ int first_key(int start, int position) const {
    return window > 0 ? max(start, position - window + 1) : start;
  }
  __device__ int first_key_of(int row, int tile) const {
    const int start = has_starts() ? *starts_of(row, tile) : 0;
    return first_key(start, queries.position(tile * box_side));
  }

  __device__ tile_range keys_of(int row, int tile) const {
    const int begin = keys_before(first_key_of(row, tile)) / box_side,
              end = keys_before(queries.position(tile * box_side) + box_side) / box_side;
    return {begin, max(begin, end)};
  }
  /// Called by all lanes of a warp. Each lane gets the result.
  __device__ tile_range queries_of(int row, int tile) const {
    const int position = key_position(tile), begin = queries.count_before(position) / box_side;
    for (int end = begin;; end += warp_size) {
      const int mine = end + static_cast<int>(threadIdx.x % warp_size);
      const bool sees = mine < query_tiles && first_key_of(row, mine) < position + box_side;
      const unsigned seeing = __ballot_sync(0xffffffffu, sees);
      if (seeing != 0xffffffffu) return {begin, end + __popc(seeing)};
    }
  }

  struct rows {
    const masked_sight& of;
    int position, first[2];  // the tile's position; the first key of each of the thread's two rows
    __device__ __forceinline__ void hide(narrow_sums& d, const sums_place& at, int keys, float as) const {
      const int there = of.key_position(keys);
      if (there == position) hide_later_keys(d, at, as);
      if (there >= max(first[0], first[1])) return;
#pragma unroll
      for (int i = 0; i < 32; ++i)
        if (there + at.column_of(i) < first[i / 2 % 2]) d[i] = as;
    }
    __device__ __forceinline__ void hide_in_last(narrow_sums& d, const sums_place& at, int keys) const {
      hide(d, at, keys, -INFINITY);
    }
  };
  __device__ rows rows_of(int row, int tile, const sums_place& at) const {
    rows r{*this, tile < query_tiles ? queries.position(tile * box_side) : 0, {0, 0}};
    if (tile >= query_tiles) return r;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int start = has_starts() ? starts_of(row, tile)[at.row + 8 * i] : 0;
      r.first[i] = first_key(start, r.position + at.row + 8 * i);
    }
    return r;
  }

  /// `line`: the document starts of the tile's queries, in shared memory.
  __device__ __forceinline__ void hide_rows(narrow_sums& d, const sums_place& at, int query_tile,
                                            int key_tile, const void* line) const {
    const auto* start_of = static_cast<const std::int32_t*>(line);
    const int position = queries.position(query_tile * box_side), there = key_position(key_tile);
    const auto first_of = [&](int column) {
      return first_key(has_starts() ? start_of[column] : 0, position + column);
    };
    if (there == position) {
#pragma unroll
      for (int i = 0; i < 32; ++i)
        if (at.ahead_of(i) < 0) d[i] = 0.0f;
    }
    if (there >= first_of(box_side - 1)) return;
#pragma unroll
    for (int i = 0; i < 32; ++i)
      if (there + at.row_of(i) < first_of(at.column_of(i))) d[i] = 0.0f;
  }
};

}  // namespace rankc::runtime::cuda::hopper
