// SPDX-License-Identifier: Apache-2.0
// The sample order of Megatron's GPTDataset for a .bin file, reproduced exactly.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace rankc::runtime {

/// numpy's RandomState: the Mersenne twister MT19937 seeded by one number.
/// Source: Matsumoto and Nishimura 1998; numpy.random.RandomState(seed).
class numpy_random {
 public:
  explicit numpy_random(std::uint32_t seed);
  std::uint32_t next();
  /// Shuffles values like RandomState.shuffle.
  template <class T>
  void shuffle(std::span<T> values) {
    for (std::size_t i = values.size(); i-- > 1;) std::swap(values[i], values[at_most(i)]);
  }

 private:
  std::size_t at_most(std::size_t largest);

  std::array<std::uint32_t, 624> state_;
  std::size_t used_ = 624;
};

/// Sample i of the dataset starts at `starts[shuffle[i]]` in the concatenation of the sequences `sequences`.
struct megatron_order {
  struct sample_start {
    std::int32_t sequence, offset;  // an index into `sequences`, and the number of its tokens to skip
    bool operator==(const sample_start&) const = default;
  };
  std::int32_t epochs = 0;
  std::vector<std::int32_t> sequences;  // document_index
  std::vector<sample_start> starts;  // sample_index: the start of each sample, and of the one after the last
  std::vector<std::uint32_t> shuffle;  // shuffle_index

  std::uint64_t samples() const { return shuffle.size(); }
};

/// Concatenates sequences of `lengths` tokens in an order that is shuffled over all epochs together. The
/// epochs suffice for `samples` samples of `seq` tokens and, with `extra`, the token after each sample. 0
/// samples: one epoch. The samples are then shuffled. If few samples of the last epoch are needed, its
/// sequences and samples are shuffled separately.
/// Errors: failure (1) if there is no token, or less than a sample.
/// Source: Megatron-Core 0.16, GPTDataset.
megatron_order order_of_megatron(std::span<const std::int32_t> lengths, std::int64_t seq, std::uint32_t seed,
                                 std::int64_t samples, bool extra = true);

}  // namespace rankc::runtime
