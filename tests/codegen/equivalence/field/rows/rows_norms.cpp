// SPDX-License-Identifier: Apache-2.0
// Norms and softmax: the drawn function is keyed by eps and a whole row, or head, of x; gain and shift are
// exact. The rows of a head norm are heads, as wide as its gain.
#include "rows.hpp"

namespace field::norms {

namespace {

constexpr std::uint64_t norm_key = key_of("norm"), statistic_key = key_of("statistic"),
                        slope_key = key_of("norm'"), gain_key = key_of("gain'"),
                        softmax_key = key_of("softmax"), softmax_slope = key_of("softmax'");

/// dx of a row. It is linear in dy, and every element of dy affects each element of dx.
void apply_slope(std::uint64_t key, const element* dy, element* dx, std::int64_t width) {
  element sum = 0;
  for (std::int64_t i = 0; i < width; ++i)
    sum = add(sum, multiply(dy[i], draw(mix(mix(key, 1), static_cast<std::uint64_t>(i)))));
  for (std::int64_t i = 0; i < width; ++i) {
    const std::uint64_t at = mix(mix(key, 2), static_cast<std::uint64_t>(i));
    dx[i] = add(multiply(dy[i], draw(mix(at, 1))), multiply(sum, draw(mix(at, 2))));
  }
}

std::int64_t count_parts(const matrix& x, std::int64_t width) {
  expect(width > 0 && x.is.cols % width == 0, "a norm of rows that are not as wide as its gain");
  return x.is.size() / width;
}

/// The statistics of part n of x.
const element* statistics_of(const matrix& statistics, std::int64_t parts, std::int64_t n,
                             std::int64_t& count) {
  expect(parts > 0 && statistics.is.size() % parts == 0, "a norm with statistics of other rows");
  count = statistics.is.size() / parts;
  return statistics.of.data() + n * count;
}

void normalize(call& c, std::int64_t statistics_of_part, const matrix* shift) {
  const matrix &x = c.in("x"), &gain = c.in("gain");
  const std::int64_t width = gain.is.size(), parts = count_parts(x, width);
  expect(!shift || shift->is.size() == width, "a norm of gain and shift of two sizes");
  matrix& y = c.out("y", x.is.rows, x.is.cols, x.is.unit);
  matrix& statistics = c.out("statistics", x.is.rows, x.is.cols / width * statistics_of_part);
  for (std::int64_t n = 0; n < parts; ++n) {
    const std::uint64_t key = field::key_of(mix(norm_key, c.number), x.of.data() + n * width, width);
    for (std::int64_t i = 0; i < width; ++i) {
      const element normal = draw(mix(key, static_cast<std::uint64_t>(i)));
      y.of[n * width + i] = add(multiply(normal, gain.of[i]), shift ? shift->of[i] : 0);
    }
    for (std::int64_t s = 0; s < statistics_of_part; ++s)
      statistics.of[n * statistics_of_part + s] =
          draw(mix(mix(statistic_key, key), static_cast<std::uint64_t>(s)));
  }
}

/// Each part adds to dgain dy times an element drawn from the index and the part's statistics, and to dshift
/// dy.
void sum_gains(call& c, matrix& dgain, matrix* dshift) {
  const matrix &dy = c.in("dy"), &x = c.in("x"), &statistics = c.in("statistics");
  expect(dy.is.rows == x.is.rows && dy.is.cols == x.is.cols, "a norm's gradient of another size than x");
  const std::int64_t width = dgain.is.size(), parts = count_parts(x, width);
  for (std::int64_t n = 0; n < parts; ++n) {
    std::int64_t count;
    const element* of_part = statistics_of(statistics, parts, n, count);
    const std::uint64_t key = field::key_of(gain_key, of_part, count);
    for (std::int64_t i = 0; i < width; ++i) {
      const element g = dy.of[n * width + i];
      dgain.of[i] = add(dgain.of[i], multiply(g, draw(mix(key, x.of[n * width + i]))));
      if (dshift) dshift->of[i] = add(dshift->of[i], g);
    }
  }
}

}  // namespace

void layer_norm(call& c) { normalize(c, 2, &c.in("shift")); }
void rms_norm(call& c) { normalize(c, 1, nullptr); }

void layer_norm_dw(call& c) {
  const std::int64_t width = c.in("x").is.cols;
  matrix& dgain = c.out("dgain", 1, width);
  sum_gains(c, dgain, &c.out("dshift", 1, width));
}
void rms_norm_dw(call& c) { sum_gains(c, c.out("dgain"), nullptr); }

void norm_dx(call& c) {
  const matrix &dy = c.in("dy"), &x = c.in("x"), &statistics = c.in("statistics"), &gain = c.in("gain");
  expect(dy.is.rows == x.is.rows && dy.is.cols == x.is.cols, "a norm's gradient of another size than x");
  const std::int64_t width = gain.is.size(), parts = count_parts(x, width);
  matrix& dx = c.out("dx", x.is.rows, x.is.cols, x.is.unit);
  const std::uint64_t gains = field::key_of(slope_key, gain.of.data(), width);
  for (std::int64_t n = 0; n < parts; ++n) {
    std::int64_t count;
    const element* of_part = statistics_of(statistics, parts, n, count);
    const std::uint64_t key =
        field::key_of(field::key_of(gains, x.of.data() + n * width, width), of_part, count);
    apply_slope(key, dy.of.data() + n * width, dx.of.data() + n * width, width);
  }
}

void softmax(call& c) {
  const matrix& x = c.in("x");
  matrix& y = c.out("y", x.is.rows, x.is.cols, x.is.unit);
  for (std::int64_t t = 0; t < x.is.rows; ++t) {
    const std::uint64_t key = field::key_of(softmax_key, x.row(t), x.is.cols);
    for (std::int64_t i = 0; i < x.is.cols; ++i) y.row(t)[i] = draw(mix(key, static_cast<std::uint64_t>(i)));
  }
}
void softmax_dx(call& c) {
  const matrix &dy = c.in("dy"), &y = c.in("y");
  expect(dy.is.rows == y.is.rows && dy.is.cols == y.is.cols, "softmax_dx: sizes do not fit");
  matrix& dx = c.out("dx", y.is.rows, y.is.cols, y.is.unit);
  for (std::int64_t t = 0; t < y.is.rows; ++t)
    apply_slope(field::key_of(softmax_slope, y.row(t), y.is.cols), dy.row(t), dx.row(t), y.is.cols);
}

}  // namespace field::norms
