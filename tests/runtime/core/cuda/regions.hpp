// SPDX-License-Identifier: Apache-2.0
// Regions as raw storage: copies numbers of any type to and from a rank through the engine's read and write,
// which know f32 alone and keep its bits.
#pragma once
#include "tables.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <vector>

namespace rankc::runtime::cuda::test {

/// Lay out the four regions with `count` floats each, followed by tokens and results.
inline void enlarge(tables& t, std::size_t count) {
  const std::size_t bytes = (count * sizeof(float) + 255) / 256 * 256;
  for (layout& l : t.layouts) {
    l.weights = {0};
    l.gradients = {bytes};
    l.first_moment = {2 * bytes};
    l.second_moment = {3 * bytes};
    l.parameter_count = count;
    l.tokens = {4 * bytes};
    l.targets = {4 * bytes + 1024};
    l.loss = {4 * bytes + 2048};
    l.norm = {4 * bytes + 2304};
    l.arena_bytes = 4 * bytes + 4096;
  }
}

/// Numbers as elements, rounded, and back.
template <class T>
T number(double x) {
  if constexpr (std::is_same_v<T, float>) return static_cast<float>(x);
  else return __float2bfloat16_rn(static_cast<float>(x));
}
template <class T>
double value(T x) {
  return static_cast<double>(static_cast<float>(x));
}

template <class T>
void put(engine& e, int rank, region which, const std::vector<T>& values) {
  const std::size_t bytes = values.size() * sizeof(T);
  std::vector<float> words(bytes / 4 + (bytes % 4 == 0 ? 0 : 1));
  std::memcpy(words.data(), static_cast<const void*>(values.data()), bytes);
  const std::vector<double> wide(words.begin(), words.end());
  e.write(rank, which, 0, wide.size(), wide.data());
}

template <class T>
std::vector<T> take(engine& e, int rank, region which, std::size_t count) {
  std::vector<double> wide((count * sizeof(T) + 3) / 4);
  e.read(rank, which, 0, wide.size(), wide.data());
  const std::vector<float> words(wide.begin(), wide.end());
  std::vector<T> values(count);
  std::memcpy(static_cast<void*>(values.data()), words.data(), count * sizeof(T));
  return values;
}

}  // namespace rankc::runtime::cuda::test
