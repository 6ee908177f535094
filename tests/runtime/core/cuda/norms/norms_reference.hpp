// SPDX-License-Identifier: Apache-2.0
// All results of a norm and its gradients, in f64, and the shapes that the kernels distinguish.
#pragma once
#include "../bench.hpp"

namespace rankc::runtime::cuda::test {

struct norm_shape {
  int tokens, width;
  bool misplaced = false;
};
// One pack a thread, and many tokens to a team; no packs; several warps, the last of them partly idle, with
// packs and where addresses forbid them; more rows to a team than are read ahead, with one and with two packs
// a thread; the most packs a thread; one token.
inline constexpr norm_shape norm_shapes[] = {
    {150, 256},   {4001, 96},       {37, 50},  {3000, 768}, {5003, 128}, {77, 64},  {70, 1000},
    {1300, 1608}, {19, 1608, true}, {9, 4096}, {5, 8192},   {3, 16400},  {2, 9001}, {1, 1600}};

inline constexpr double eps = 3e-4;  // large enough to show in rows of numbers near 1

/// Without `centred` it is RMSNorm: no mean, no shift. `residual`, if not empty, is added to dx.
struct norm_reference {
  numbers y, stats, dx, dgain, dshift;
  norm_reference(bool centred, const numbers& x, const numbers& gain, const numbers& shift, const numbers& dy,
                 const numbers& residual, int tokens, int width)
      : y(x.size()), dx(x.size()), dgain(width, 0.0), dshift(width, 0.0) {
    for (int n = 0; n < tokens; ++n) {
      const std::size_t begin = static_cast<std::size_t>(n) * width;
      const double *row = &x[begin], *d = &dy[begin];
      double mean = 0.0, square = 0.0, mean_e = 0.0, mean_product = 0.0;
      for (int c = 0; c < width; ++c) mean += centred ? row[c] / width : 0.0;
      for (int c = 0; c < width; ++c) square += (row[c] - mean) * (row[c] - mean) / width;
      const double scale = 1.0 / std::sqrt(square + eps);
      for (int c = 0; c < width; ++c) {
        const double hat = (row[c] - mean) * scale, e = d[c] * gain[c];
        y[begin + c] = hat * gain[c] + (centred ? shift[c] : 0.0);
        mean_e += centred ? e / width : 0.0;
        mean_product += e * hat / width;
        dgain[c] += d[c] * hat;
        dshift[c] += d[c];
      }
      for (int c = 0; c < width; ++c)
        dx[begin + c] = scale * (d[c] * gain[c] - mean_e - (row[c] - mean) * scale * mean_product) +
                        (residual.empty() ? 0.0 : residual[begin + c]);
      if (centred) stats.push_back(mean);
      stats.push_back(scale);
    }
  }
};

/// The operands of a norm in the arena; x has a mean.
template <class T>
struct norm_operands {
  bench b;
  std::size_t count;
  numbers x, gain, shift, dy, residual, bias;
  at x_at, gain_at, shift_at, dy_at, residual_at, bias_at, y_at, stats_at, dx_at, dgain_at, dshift_at;
  explicit norm_operands(const norm_shape& s) : count(static_cast<std::size_t>(s.tokens) * s.width) {
    if (s.misplaced) b.misplace();
    x = random_numbers<T>(count, 2.0, 1);
    for (double& value : x) value = rounded<T>(value + 1.5);
    gain = random_numbers<T>(s.width, 2.0, 2);
    shift = random_numbers<T>(s.width, 1.0, 3);
    dy = random_numbers<T>(count, 1.0, 4);
    residual = random_numbers<T>(count, 1.0, 5);
    bias = random_numbers<T>(s.width, 1.0, 6);
    x_at = b.put<T>(x);
    gain_at = b.put<T>(gain);
    shift_at = b.put<T>(shift);
    dy_at = b.put<T>(dy);
    residual_at = b.put<T>(residual);
    bias_at = b.put<T>(bias);
    y_at = b.room<T>(count);
    stats_at = b.room<float>(2 * s.tokens);
    dx_at = b.room<T>(count);
    dgain_at = b.room<float>(s.width);
    dshift_at = b.room<float>(s.width);
  }
};

inline numbers doubled(numbers values) {
  for (double& value : values) value *= 2;
  return values;
}

}  // namespace rankc::runtime::cuda::test
