// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/hash.hpp>

#include <cmath>

namespace rankc::runtime {

void hash_uniform(std::string_view name, double std, std::uint64_t seed, std::size_t first, std::size_t count,
                  double* to) {
  const std::uint64_t key = fnv1a64(name) ^ seed;
  const auto scale = static_cast<float>(std * std::sqrt(3.0) * 0x1p-24);
  for (std::size_t i = 0; i < count; ++i) {
    const auto k =
        2 * static_cast<std::int64_t>(splitmix64(key + first + i) >> 40) + 1 - (std::int64_t{1} << 24);
    to[i] = static_cast<float>(k) * scale;
  }
}

}  // namespace rankc::runtime
