// SPDX-License-Identifier: Apache-2.0
// Selects the source of each sample among several weighted ones, as a function of the sample's number.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace rankc::runtime {

/// A pattern of 2^16 samples that repeats. Each next sample is from the source that is furthest below its
/// share. Of the first n samples, each source therefore has its share to within one or two samples, for any
/// n.
/// Units: weights of any scale, above 0; a share is rounded to 2^-16.
/// Source: the order is that of Megatron-Core's BlendedDataset.
class mixture {
 public:
  explicit mixture(std::span<const double> weights);

  /// The source of sample `s`, and the number of earlier samples from that source.
  struct choice {
    std::size_t source;
    std::uint64_t number;
  };
  choice of(std::uint64_t s) const;

  /// The number of samples of a source among the first `n` samples.
  std::uint64_t count(std::size_t source, std::uint64_t n) const;

 private:
  std::vector<std::uint16_t> source_;  // the source at each position of the pattern
  std::vector<std::uint32_t> before_;  // the number of earlier samples from that source
  std::vector<std::uint32_t> counts_;  // the number of samples of each source in the pattern
};

}  // namespace rankc::runtime
