// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/mixture.hpp>

#include <algorithm>
#include <numeric>

namespace rankc::runtime {

namespace {
constexpr std::size_t length = std::size_t{1} << 16;
}

mixture::mixture(std::span<const double> weights)
    : source_(length), before_(length), counts_(weights.size()) {
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (std::size_t place = 0; place < length; ++place) {
    const auto behind = [&](std::size_t i) {
      return weights[i] / total * static_cast<double>(std::max<std::size_t>(place, 1)) -
             static_cast<double>(counts_[i]);
    };
    std::size_t chosen = 0;
    for (std::size_t i = 1; i < weights.size(); ++i)
      if (behind(i) > behind(chosen)) chosen = i;
    source_[place] = static_cast<std::uint16_t>(chosen);
    before_[place] = counts_[chosen]++;
  }
}

mixture::choice mixture::of(std::uint64_t s) const {
  const std::size_t place = s % length, source = source_[place];
  return {source, s / length * counts_[source] + before_[place]};
}

std::uint64_t mixture::count(std::size_t source, std::uint64_t n) const {
  const auto rest = static_cast<std::ptrdiff_t>(n % length);
  return n / length * counts_[source] +
         static_cast<std::uint64_t>(std::count(source_.begin(), source_.begin() + rest, source));
}

}  // namespace rankc::runtime
