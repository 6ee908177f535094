// SPDX-License-Identifier: Apache-2.0
// The tiles of a grouped GEMM, numbered through all segments. A segment has the tiles that its rows need,
// times the column tiles. Blocks read the offsets on the device when they take tiles.
#pragma once
#include "../device/device.cuh"

namespace rankc::runtime::cuda {

/// The place of a tile: `rows` rows of a segment from `row` on, and its column tile.
struct row_tile {
  int segment, row, rows, column;
};

/// Finds tiles by their number. A whole warp calls it, and holds 32 segments at a time.
template <int Rows>
class row_tiles {
 public:
  __device__ row_tiles(const int* offsets, int segments, int column_tiles)
      : offsets_(offsets), segments_(segments), column_tiles_(column_tiles) {}

  /// Finds the place of a tile, whose number must not be lower than in earlier calls. Returns false past the
  /// last tile.
  __device__ bool find(int tile, row_tile& place) {
    while (tile >= through_) {
      if (next_ >= segments_) return false;
      take_segments();
    }
    const int of = __popc(__ballot_sync(all, last_ <= tile));
    const int before = __shfl_sync(all, last_, of == 0 ? 0 : of - 1);
    const int start = __shfl_sync(all, start_, of), count = __shfl_sync(all, count_, of);
    place_in_segment(tile - (of == 0 ? before_ : before), count, place);
    place.segment = next_ - warp_size + of;
    place.rows = min(Rows, count - place.row);
    place.row += start;
    return true;
  }

 private:
  static constexpr unsigned all = 0xffffffffu;
  static constexpr int together =
      16;  // row tiles that use the same columns together, which stay in the L2 cache

  __device__ void take_segments() {
    const int lane = threadIdx.x % warp_size, segment = next_ + lane;
    start_ = segment < segments_ ? offsets_[segment] : 0;
    count_ = segment < segments_ ? offsets_[segments_ + segment] - start_ : 0;
    before_ = through_;
    last_ = (count_ + Rows - 1) / Rows * column_tiles_;
    for (int step = 1; step < warp_size; step *= 2) {
      const int below = __shfl_up_sync(all, last_, step);
      if (lane >= step) last_ += below;
    }
    last_ += before_;
    through_ = __shfl_sync(all, last_, warp_size - 1);
    next_ += warp_size;
  }

  /// The tiles of a segment go down its rows, then to the next column, within groups of row tiles.
  __device__ void place_in_segment(int tile, int count, row_tile& place) const {
    const int group = tile / (together * column_tiles_), first = group * together;
    const int size = min(together, (count + Rows - 1) / Rows - first), within = tile - first * column_tiles_;
    place.row = (first + within % size) * Rows;
    place.column = within / size;
  }

  const int* offsets_;
  int segments_, column_tiles_;
  int next_ = 0;                  // the first segment not yet taken
  int before_ = 0, through_ = 0;  // tiles before the current segments, and up to their end
  int start_ = 0, count_ = 0;     // rows of this lane's segment
  int last_ = 0;                  // tiles up to the end of this lane's segment
};

}  // namespace rankc::runtime::cuda
