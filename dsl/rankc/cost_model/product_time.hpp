// SPDX-License-Identifier: Apache-2.0
// The time of a GEMM on a GPU.
#pragma once
#include <rankc/cost_model/gpu_speed.hpp>

#include <algorithm>

namespace rankc::cost_model {

namespace detail {
constexpr long long blocks(long long n, long long size) { return (n + size - 1) / size; }

}  // namespace detail

/// The time of a GEMM of m x k and k x n, in tiles that the processors run in waves. k is split into the
/// number of parts that is fastest. `bytes` is the size of all operands. `share` is the fraction of the speed
/// that other work in the kernel leaves.
/// Units: seconds.
constexpr double product_time(const gpu_speed& g, long long m, long long n, long long k, double bytes,
                              double share) {
  constexpr int tiles[][2]{{256, 128}, {128, 256}, {192, 128}, {128, 192},
                           {128, 128}, {128, 64},  {64, 128},  {64, 64}};
  constexpr double widest = 1.0 / 256 + 1.0 / 128;
  constexpr long long step = 64, least = 256;  // terms of k: read at a time, fewest in a part
  const double passing = bytes / g.passes.per_second;
  double best = -1;
  for (const auto& [rows, columns] : tiles)
    for (const int parts : {1, 2, 3, 4, 6, 8, 16}) {
      if (parts > 1 && k < parts * least) break;
      const double speed = g.products * share / g.processors * (1 + g.narrow_tile) /
                           (1 + g.narrow_tile * (1.0 / rows + 1.0 / columns) / widest);
      const auto depth = static_cast<double>(detail::blocks(detail::blocks(k, parts), step) * step);
      const auto waves = static_cast<double>(
          detail::blocks(detail::blocks(m, rows) * detail::blocks(n, columns) * parts, g.processors));
      const double computing = waves * (2.0 * rows * columns * depth / speed + g.tile_start);
      double takes = std::max(computing, passing) + g.stores_beside * std::min(computing, passing);
      if (parts > 1)
        takes += g.split_sums * 8.0 * parts * static_cast<double>(m) * static_cast<double>(n) /
                 g.passes.per_second;
      if (best < 0 || takes < best) best = takes;
    }
  return g.product_start + best;
}

}  // namespace rankc::cost_model
