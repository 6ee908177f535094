// SPDX-License-Identifier: Apache-2.0
// Layer norm and RMS norm against loops and central differences.
#include "workspace.hpp"

namespace norm_test {

using namespace rankc::test;
namespace host = rankc::host;

namespace {

constexpr int tokens = 5, width = 133;  // more than one block of column sums
constexpr double eps = 3e-4;

values layer_norm_reference(const values& x, const values& gain, const values& shift) {
  values y(x.size());
  for (int n = 0; n < tokens; ++n) {
    double mean = 0, variance = 0;
    for (int c = 0; c < width; ++c) mean += x[n * width + c] / width;
    for (int c = 0; c < width; ++c) variance += std::pow(x[n * width + c] - mean, 2) / width;
    for (int c = 0; c < width; ++c)
      y[n * width + c] = (x[n * width + c] - mean) / std::sqrt(variance + eps) * gain[c] + shift[c];
  }
  return y;
}

values rms_norm_reference(const values& x, const values& gain) {
  values y(x.size());
  for (int n = 0; n < tokens; ++n) {
    double square = 0;
    for (int c = 0; c < width; ++c) square += x[n * width + c] * x[n * width + c] / width;
    for (int c = 0; c < width; ++c) y[n * width + c] = x[n * width + c] / std::sqrt(square + eps) * gain[c];
  }
  return y;
}

}  // namespace

TEST_CASE_TEMPLATE("layer norm and its statistics", T, float, double) {
  workspace<T> space;
  values x = random_values(tokens * width, 1);
  for (double& v : x) v += 3;  // this mean would spoil a one-pass variance
  const values gain = random_values(width, 2), shift = random_values(width, 3);
  const at y = space.room(x.size()), stats = space.room(2 * tokens), in_x = space.put(x);
  const at in_gain = space.put(gain), in_shift = space.put(shift);
  host::layer_norm<T>(space.lane(), y, stats, in_x, in_gain, in_shift, tokens, width, eps);
  const values want = layer_norm_reference(space.get(in_x, x.size()), gain, shift);
  check_near(space.get(y, x.size()), want, tolerance<T>);
  const values s = space.get(stats, 2 * tokens);
  for (int n = 0; n < tokens; ++n) CHECK(std::abs(s[2 * n] - 3) < 0.3);
  for (int n = 0; n < tokens; ++n) CHECK(std::abs(s[2 * n + 1] - std::sqrt(3.0)) < 0.3);
}

TEST_CASE("layer norm gradients are central differences; dx may be dy; dw may add") {
  workspace<double> space;
  const values x = random_values(tokens * width, 1), gain = random_values(width, 2),
               shift = random_values(width, 3);
  const values dy = random_values(x.size(), 4), before = random_values(width, 5);
  const at in_x = space.put(x), in_gain = space.put(gain), in_dy = space.put(dy), y = space.room(x.size());
  const at stats = space.room(2 * tokens), dx = space.room(x.size()), dgain = space.room(width);
  const at dshift = space.room(width), dgain_sum = space.put(before), dshift_sum = space.put(before);
  host::layer_norm<double>(space.lane(), y, stats, in_x, in_gain, space.put(shift), tokens, width, eps);
  host::layer_norm_dx<double>(space.lane(), dx, in_dy, in_x, stats, in_gain, tokens, width);
  host::layer_norm_dw<double>(space.lane(), dgain, dshift, in_dy, in_x, stats, tokens, width, false);
  host::layer_norm_dw<double>(space.lane(), dgain_sum, dshift_sum, in_dy, in_x, stats, tokens, width, true);

  const auto of_x = [&](const values& v) { return layer_norm_reference(v, gain, shift); };
  const auto of_gain = [&](const values& v) { return layer_norm_reference(x, v, shift); };
  const auto of_shift = [&](const values& v) { return layer_norm_reference(x, gain, v); };
  check_near(space.get(dx, x.size()), derivative(of_x, x, dy), difference_tolerance);
  check_near(space.get(dgain, width), derivative(of_gain, gain, dy), difference_tolerance);
  check_near(space.get(dshift, width), derivative(of_shift, shift, dy), difference_tolerance);
  check_near(space.get(dgain_sum, width), sum(before, space.get(dgain, width)), 1e-14);
  check_near(space.get(dshift_sum, width), sum(before, space.get(dshift, width)), 1e-14);

  host::layer_norm_dx<double>(space.lane(), in_dy, in_dy, in_x, stats, in_gain, tokens, width);
  CHECK(space.get(in_dy, x.size()) == space.get(dx, x.size()));
}

TEST_CASE_TEMPLATE("RMS norm and its statistics", T, float, double) {
  workspace<T> space;
  const values x = random_values(tokens * width, 1), gain = random_values(width, 2);
  const at y = space.room(x.size()), stats = space.room(tokens);
  host::rms_norm<T>(space.lane(), y, stats, space.put(x), space.put(gain), tokens, width, eps);
  check_near(space.get(y, x.size()), rms_norm_reference(x, gain), tolerance<T>);
  for (const double s : space.get(stats, tokens)) CHECK(std::abs(s - std::sqrt(3.0)) < 0.3);
}

TEST_CASE("RMS norm gradients are central differences; dx may be dy; dw may add") {
  workspace<double> space;
  const values x = random_values(tokens * width, 1), gain = random_values(width, 2);
  const values dy = random_values(x.size(), 4), before = random_values(width, 5);
  const at in_x = space.put(x), in_gain = space.put(gain), in_dy = space.put(dy), y = space.room(x.size());
  const at stats = space.room(tokens), dx = space.room(x.size()), dgain = space.room(width);
  const at dgain_sum = space.put(before);
  host::rms_norm<double>(space.lane(), y, stats, in_x, in_gain, tokens, width, eps);
  host::rms_norm_dx<double>(space.lane(), dx, in_dy, in_x, stats, in_gain, tokens, width);
  host::rms_norm_dw<double>(space.lane(), dgain, in_dy, in_x, stats, tokens, width, false);
  host::rms_norm_dw<double>(space.lane(), dgain_sum, in_dy, in_x, stats, tokens, width, true);

  const auto of_x = [&](const values& v) { return rms_norm_reference(v, gain); };
  const auto of_gain = [&](const values& v) { return rms_norm_reference(x, v); };
  check_near(space.get(dx, x.size()), derivative(of_x, x, dy), difference_tolerance);
  check_near(space.get(dgain, width), derivative(of_gain, gain, dy), difference_tolerance);
  check_near(space.get(dgain_sum, width), sum(before, space.get(dgain, width)), 1e-14);

  host::rms_norm_dx<double>(space.lane(), in_dy, in_dy, in_x, stats, in_gain, tokens, width);
  CHECK(space.get(in_dy, x.size()) == space.get(dx, x.size()));
}

}  // namespace norm_test
