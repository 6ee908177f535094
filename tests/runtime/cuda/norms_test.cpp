// SPDX-License-Identifier: Apache-2.0
#include "bench.hpp"

namespace rankc::cuda::test {
namespace {

struct shape {
  int tokens, width;
};
// Packs and one per thread; a width without packs; several packs a thread.
constexpr shape shapes[] = {{150, 256}, {37, 50}, {9, 4096}};

/// Everything a norm gives, in f64. Without `centred` it is RMSNorm: no mean, no shift.
struct reference {
  numbers y, stats, dx, dgain, dshift;
  reference(bool centred, const numbers& x, const numbers& gain, const numbers& shift, const numbers& dy,
            int tokens, int width)
      : y(x.size()), dx(x.size()), dgain(width, 0.0), dshift(width, 0.0) {
    for (int n = 0; n < tokens; ++n) {
      const double* row = &x[static_cast<std::size_t>(n) * width];
      const double* d = &dy[static_cast<std::size_t>(n) * width];
      double mean = 0.0, square = 0.0, mean_e = 0.0, mean_product = 0.0;
      for (int c = 0; c < width; ++c) mean += centred ? row[c] / width : 0.0;
      for (int c = 0; c < width; ++c) square += (row[c] - mean) * (row[c] - mean) / width;
      const double scale = 1.0 / std::sqrt(square + 1e-5);
      for (int c = 0; c < width; ++c) {
        const double hat = (row[c] - mean) * scale, e = d[c] * gain[c];
        y[static_cast<std::size_t>(n) * width + c] = hat * gain[c] + (centred ? shift[c] : 0.0);
        mean_e += centred ? e / width : 0.0;
        mean_product += e * hat / width;
        dgain[c] += d[c] * hat;
        dshift[c] += d[c];
      }
      for (int c = 0; c < width; ++c)
        dx[static_cast<std::size_t>(n) * width + c] =
            scale * (d[c] * gain[c] - mean_e - (row[c] - mean) * scale * mean_product);
      if (centred) stats.push_back(mean);
      stats.push_back(scale);
    }
  }
};

TEST_CASE_TEMPLATE("layer norm and its gradients", T, float, bf16) {
  for (const auto [tokens, width] : shapes) {
    CAPTURE(tokens);
    CAPTURE(width);
    bench b;
    const std::size_t count = static_cast<std::size_t>(tokens) * width;
    numbers x = random_numbers<T>(count, 2.0, 1);
    for (double& value : x) value = rounded<T>(value + 1.5);  // a mean to take away
    const numbers gain = random_numbers<T>(width, 2.0, 2), shift = random_numbers<T>(width, 1.0, 3),
                  dy = random_numbers<T>(count, 1.0, 4);
    const at x_at = b.put<T>(x), gain_at = b.put<T>(gain), shift_at = b.put<T>(shift), dy_at = b.put<T>(dy),
             y_at = b.room<T>(count), stats_at = b.room<float>(2 * tokens), dx_at = b.room<T>(count),
             dgain_at = b.room<float>(width), dshift_at = b.room<float>(width);
    layer_norm<T>(b.of(), y_at, stats_at, x_at, gain_at, shift_at, tokens, width);
    layer_norm_dx<T>(b.of(), dx_at, dy_at, x_at, stats_at, gain_at, tokens, width);
    layer_norm_dw<T>(b.of(), dgain_at, dshift_at, dy_at, x_at, stats_at, tokens, width, false);
    const reference wanted(true, x, gain, shift, dy, tokens, width);
    check_close("stats", b.take<float>(stats_at, 2 * tokens), wanted.stats, 1e-5, 1e-6);
    check_rounded<T>("y", b.take<T>(y_at, count), wanted.y, 4.0);
    check_rounded<T>("dx", b.take<T>(dx_at, count), wanted.dx, 4.0);
    check_close("dgain", b.take<float>(dgain_at, width), wanted.dgain, 1e-5, 1e-4);
    check_close("dshift", b.take<float>(dshift_at, width), wanted.dshift, 1e-5, 1e-4);
    layer_norm_dw<T>(b.of(), dgain_at, dshift_at, dy_at, x_at, stats_at, tokens, width, true);
    numbers twice = wanted.dgain;
    for (double& d : twice) d *= 2;
    check_close("dgain, accumulated", b.take<float>(dgain_at, width), twice, 1e-5, 2e-4);
    layer_norm_dx<T>(b.of(), dy_at, dy_at, x_at, stats_at, gain_at, tokens, width);
    check_rounded<T>("dx in place of dy", b.take<T>(dy_at, count), wanted.dx, 4.0);
  }
}

TEST_CASE_TEMPLATE("rms norm and its gradients", T, float, bf16) {
  for (const auto [tokens, width] : shapes) {
    CAPTURE(tokens);
    CAPTURE(width);
    bench b;
    const std::size_t count = static_cast<std::size_t>(tokens) * width;
    const numbers x = random_numbers<T>(count, 2.0, 1), gain = random_numbers<T>(width, 2.0, 2),
                  dy = random_numbers<T>(count, 1.0, 4);
    const at x_at = b.put<T>(x), gain_at = b.put<T>(gain), dy_at = b.put<T>(dy), y_at = b.room<T>(count),
             stats_at = b.room<float>(tokens), dx_at = b.room<T>(count), dgain_at = b.room<float>(width);
    rms_norm<T>(b.of(), y_at, stats_at, x_at, gain_at, tokens, width);
    rms_norm_dx<T>(b.of(), dx_at, dy_at, x_at, stats_at, gain_at, tokens, width);
    rms_norm_dw<T>(b.of(), dgain_at, dy_at, x_at, stats_at, tokens, width, false);
    const reference wanted(false, x, gain, {}, dy, tokens, width);
    check_close("stats", b.take<float>(stats_at, tokens), wanted.stats, 1e-5, 1e-6);
    check_rounded<T>("y", b.take<T>(y_at, count), wanted.y, 4.0);
    check_rounded<T>("dx", b.take<T>(dx_at, count), wanted.dx, 4.0);
    check_close("dgain", b.take<float>(dgain_at, width), wanted.dgain, 1e-5, 1e-4);
    rms_norm_dw<T>(b.of(), dgain_at, dy_at, x_at, stats_at, tokens, width, true);
    numbers twice = wanted.dgain;
    for (double& d : twice) d *= 2;
    check_close("dgain, accumulated", b.take<float>(dgain_at, width), twice, 1e-5, 2e-4);
  }
}

}  // namespace
}  // namespace rankc::cuda::test
