// SPDX-License-Identifier: Apache-2.0
// The tiles that each block of a kernel works on, and their order. There is one block for each
// multiprocessor.
#pragma once
#include "../device/device.cuh"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace rankc::runtime::cuda::hopper {

/// One unit of work: consecutive tiles of a head. `tile` is the first.
struct attention_item {
  int row, head, tile;
};

/// The items of each block, in order. All items are in one list. In each round every block takes the next
/// item of the list; every other round goes through the blocks in reverse order, which evens out their work.
/// The list is a sequence of turns. A turn has all items of some heads, which read the same tokens, and
/// begins with the longest ones. A turn is 1 to `most_rounds` rounds long: the shortest length with which no
/// block has more than `even` times the mean work, or else the length with the most even work.
class attention_walk {
 public:
  /// `groups` is the number of tiles of an item. With `causal`, one end of a head has the most work: its last
  /// tiles if `last_first`, else its first tiles.
  attention_walk(int groups, int rows, int heads, int tiles, bool causal, bool last_first)
      : groups_(groups),
        heads_(heads),
        all_(rows * heads),
        items_((tiles + groups - 1) / groups),
        tiles_(tiles),
        causal_(causal),
        last_first_(last_first) {
    int best = 1;
    double least = std::numeric_limits<double>::max();
    for (int quarters = 4; quarters <= 4 * most_rounds && least > even; ++quarters) {
      turn_ = std::max(1, quarters * processors / (4 * items_));
      if (const double work = most_work(); work < least) {
        least = work;
        best = turn_;
      }
    }
    turn_ = best;
  }

  __device__ bool next(attention_item& x) {
    const int n = number(static_cast<int>(blockIdx.x), round_++);
    if (n >= all_ * items_) return false;
    const auto [head, order] = place_of(n);
    x = {head / heads_, head % heads_, first_tile(order)};
    return true;
  }

 private:
  static constexpr int most_rounds = 4;  // longest turn in rounds; caches hold the tokens of no more
  // Work is even if no block has more than this multiple of the mean.
  static constexpr double even = 1.04;
  struct place {
    int head, order;
  };
  int groups_, heads_, all_, items_, tiles_, turn_ = 1;  // items_, tiles_: per head; turn_: heads per turn
  bool causal_, last_first_;
  int round_ = 0;

  __host__ __device__ static int number(int block, int round) {
    return round * processors + (round % 2 == 0 ? block : processors - 1 - block);
  }
  __host__ __device__ place place_of(int n) const {
    const int first = n / (turn_ * items_) * turn_, left = all_ - first, heads = turn_ < left ? turn_ : left,
              within = n - first * items_;
    return {first + within % heads, within / heads};
  }
  __host__ __device__ int first_tile(int order) const {
    return groups_ * (last_first_ ? items_ - 1 - order : order);
  }

  /// The most work of a block, as a multiple of the mean over blocks.
  double most_work() const {
    std::int64_t most = 0, all = 0;
    for (int block = 0; block < processors; ++block) {
      std::int64_t work = 0;
      for (int round = 0, n; (n = number(block, round)) < all_ * items_; ++round)
        work += work_of(first_tile(place_of(n).order));
      most = std::max(most, work);
      all += work;
    }
    return static_cast<double>(most) * processors / static_cast<double>(all);
  }
  /// The number of tiles that a tile is multiplied with.
  int met_by(int tile) const {
    if (!causal_) return tiles_;
    return last_first_ ? tile + 1 : tiles_ - tile;
  }
  /// The work of an item: the tiles that its tiles are multiplied with, and one more for the item itself.
  int work_of(int first) const {
    int met = 1;
    for (int tile = first; tile < std::min(tiles_, first + groups_); ++tile) met += met_by(tile);
    return met;
  }
};

}  // namespace rankc::runtime::cuda::hopper
