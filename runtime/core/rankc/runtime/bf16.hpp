// SPDX-License-Identifier: Apache-2.0
// The 16-bit type of moments, and of weights without a master copy, with its rounding. Hosts and devices
// round with the same bits.
#pragma once
#include <rankc/runtime/host_device.hpp>

#include <bit>
#include <cstdint>

namespace rankc::runtime {

/// The upper half of an f32.
struct bf16_bits {
  std::uint16_t bits = 0;
  bool operator==(const bf16_bits&) const = default;
};

/// The rounding of a number to bf16. `stochastic` rounds up with probability (x - lower) / (upper - lower),
/// where lower and upper are the neighbouring bf16 numbers.
enum class rounding { nearest, stochastic };

namespace detail {
RANKC_HOST_DEVICE inline std::uint32_t bits_of(float x) {
#if defined(__CUDA_ARCH__)
  return __float_as_uint(x);
#else
  return std::bit_cast<std::uint32_t>(x);
#endif
}
RANKC_HOST_DEVICE inline float float_of(std::uint32_t bits) {
#if defined(__CUDA_ARCH__)
  return __uint_as_float(bits);
#else
  return std::bit_cast<float>(bits);
#endif
}
}  // namespace detail

RANKC_HOST_DEVICE inline float widened(bf16_bits x) {
  return detail::float_of(static_cast<std::uint32_t>(x.bits) << 16);
}

/// Ties go to even. NaN stays NaN.
RANKC_HOST_DEVICE inline bf16_bits rounded_to_nearest(float x) {
  const std::uint32_t bits = detail::bits_of(x);
  if ((bits & 0x7FFFFFFF) > 0x7F800000) return {static_cast<std::uint16_t>(bits >> 16 | 0x40)};
  return {static_cast<std::uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16)};
}

/// Rounds stochastically. `random` is one of 2^16 equally probable numbers. It changes neither a number that
/// bf16 represents exactly nor one that is not finite.
/// Source: Gupta et al. 2015.
RANKC_HOST_DEVICE inline bf16_bits rounded_stochastically(float x, std::uint16_t random) {
  const std::uint32_t bits = detail::bits_of(x);
  if ((bits & 0x7F800000) == 0x7F800000) return rounded_to_nearest(x);
  return {static_cast<std::uint16_t>((bits + random) >> 16)};
}

}  // namespace rankc::runtime
