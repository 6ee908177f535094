// SPDX-License-Identifier: Apache-2.0
// The random bits by which an element of a parameter is rounded in a step. They are a function of the
// recipe's seed, the step, the parameter's name and the element's index in the whole tensor. So they do not
// depend on the sharding.
#pragma once
#include <rankc/runtime/bf16.hpp>
#include <rankc/runtime/fnv1a.hpp>
#include <rankc/runtime/program.hpp>

#include <span>

namespace rankc::runtime {

struct random_words {
  std::uint32_t word[4];
};

/// Four random words for each counter and key.
/// Source: Salmon, Moraes, Dror and Shaw 2011: Philox4x32-10.
RANKC_HOST_DEVICE inline random_words philox(random_words counter, std::uint32_t key0, std::uint32_t key1) {
  auto& c = counter.word;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t x = std::uint64_t{0xD2511F53} * c[0], y = std::uint64_t{0xCD9E8D57} * c[2];
    const std::uint32_t c1 = c[1], c3 = c[3];
    c[0] = static_cast<std::uint32_t>(y >> 32) ^ c1 ^ key0;
    c[1] = static_cast<std::uint32_t>(y);
    c[2] = static_cast<std::uint32_t>(x >> 32) ^ c3 ^ key1;
    c[3] = static_cast<std::uint32_t>(x);
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
  return counter;
}

/// Maps contiguous elements of a rank to indices in the whole tensor: element i has the index first + i /
/// columns * pitch + i % columns.
struct element_place {
  std::uint64_t tensor = 0;  // the hash of its name
  std::uint64_t first = 0;
  std::uint32_t columns = 1, pitch = 1;
  RANKC_HOST_DEVICE std::uint64_t operator[](std::uint64_t i) const {
    return first + i / columns * pitch + i % columns;
  }
};

/// 16 bits each for an element's weight and moments.
struct element_bits {
  std::uint16_t weight, first_moment, second_moment;
};

/// The bits of the elements of one tensor in one step. Two neighbouring elements use one call of the
/// generator.
class bits_of_elements {
 public:
  RANKC_HOST_DEVICE bits_of_elements(std::uint64_t tensor, std::uint32_t seed, std::uint32_t step)
      : tensor_(tensor), seed_(seed), step_(step) {}

  RANKC_HOST_DEVICE element_bits operator[](std::uint64_t element) {
    if (const std::uint64_t pair = element / 2; pair != pair_) {
      pair_ = pair;
      words_ =
          philox({{static_cast<std::uint32_t>(pair), static_cast<std::uint32_t>(pair >> 32), step_, seed_}},
                 static_cast<std::uint32_t>(tensor_), static_cast<std::uint32_t>(tensor_ >> 32));
    }
    const std::uint32_t low = element % 2 ? words_.word[2] : words_.word[0],
                        high = element % 2 ? words_.word[3] : words_.word[1];
    return {static_cast<std::uint16_t>(low), static_cast<std::uint16_t>(low >> 16),
            static_cast<std::uint16_t>(high)};
  }

 private:
  std::uint64_t tensor_, pair_ = ~std::uint64_t{0};
  std::uint32_t seed_, step_;
  random_words words_{};
};

/// Calls f(elements, place) for each parameter in some ranges, with the elements that this rank keeps.
void for_each_tensor(const auto& rank, std::span<const range> ranges, auto&& f) {
  const auto tp = static_cast<std::size_t>(rank.row->tp),
             shards = static_cast<std::size_t>(rank.about->shards);
  for (const range& of : ranges)
    for (const parameter& p : rank.where->parameters) {
      if (p.element < of.first || p.element >= of.first + of.count) continue;
      const auto rows = static_cast<std::size_t>(p.rows), columns = static_cast<std::size_t>(p.cols);
      const std::size_t share = p.experts ? static_cast<std::size_t>(rank.about->expert_shards()) : shards;
      const std::size_t kept = (rows + share - 1) / share;  // rows on each rank that shares the parameter
      std::size_t before = 0;                               // rows of the parameter on ranks before this one
      if (p.experts) before = static_cast<std::size_t>(rank.about->ep_of(*rank.row)) * rows;
      else if (p.shard_dim == 0) before = tp * rows;
      const std::size_t row =
          before + static_cast<std::size_t>(p.experts ? rank.about->expert_shard_of(*rank.row)
                                                      : rank.about->shard_of(*rank.row)) *
                       kept;
      const std::size_t pitch = columns * static_cast<std::size_t>(rank.about->parts_of_columns(p));
      f(range{p.element, kept * columns, of.decay, of.balances},
        element_place{
            fnv1a64(p.name),
            row * pitch + static_cast<std::size_t>(rank.about->part_of_columns(p, *rank.row)) * columns,
            static_cast<std::uint32_t>(columns), static_cast<std::uint32_t>(pitch)});
    }
}

}  // namespace rankc::runtime
