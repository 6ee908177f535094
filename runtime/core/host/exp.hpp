// SPDX-License-Identifier: Apache-2.0
// The exponential of the host kernels. A loop over it vectorises with any compiler, and an element gets the
// same bits at every index of the loop. NaN stays NaN.
#pragma once
#include <bit>
#include <cstdint>

namespace rankc::runtime::host {

/// e^x = 2^k e^r with k = round(x / ln 2), |r| <= ln 2 / 2, and a Taylor polynomial for e^r.
/// Units: error below 2 ulp for x in [-708, 709]; x outside is clamped to that range.
/// Source: Cody and Waite 1980, for the two-part ln 2.
inline double exponential(double x) {
  constexpr double shifter = 0x1.8p52;  // adding it leaves round(x) in the low bits of the mantissa
  x = x < -708.0 ? -708.0 : x;
  x = x > 709.0 ? 709.0 : x;
  const double shifted = x * 0x1.71547652b82fep0 + shifter;
  const double k = shifted - shifter;
  const double r = (x - k * 0x1.62e42fefa3800p-1) - k * 0x1.ef35793c76730p-45;
  double p = 1.0 / 6227020800.0;
  p = p * r + 1.0 / 479001600.0;
  p = p * r + 1.0 / 39916800.0;
  p = p * r + 1.0 / 3628800.0;
  p = p * r + 1.0 / 362880.0;
  p = p * r + 1.0 / 40320.0;
  p = p * r + 1.0 / 5040.0;
  p = p * r + 1.0 / 720.0;
  p = p * r + 1.0 / 120.0;
  p = p * r + 1.0 / 24.0;
  p = p * r + 1.0 / 6.0;
  p = p * r + 0.5;
  p = p * r + 1.0;
  p = p * r + 1.0;
  return p * std::bit_cast<double>((std::bit_cast<std::uint64_t>(shifted) + 1023) << 52);
}

/// The exponential in f32, for x in [-87, 88].
inline float exponential(float x) {
  constexpr float shifter = 0x1.8p23f;
  x = x < -87.0f ? -87.0f : x;
  x = x > 88.0f ? 88.0f : x;
  const float shifted = x * 0x1.715476p0f + shifter;
  const float k = shifted - shifter;
  const float r = (x - k * 0x1.62e400p-1f) - k * 0x1.7f7d1cp-20f;
  float p = 1.0f / 5040.0f;
  p = p * r + 1.0f / 720.0f;
  p = p * r + 1.0f / 120.0f;
  p = p * r + 1.0f / 24.0f;
  p = p * r + 1.0f / 6.0f;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  return p * std::bit_cast<float>((std::bit_cast<std::uint32_t>(shifted) + 127) << 23);
}

/// 1 / (1 + e^-x).
template <class T>
inline T sigmoid(T x) {
  return 1 / (1 + exponential(-x));
}

}  // namespace rankc::runtime::host
