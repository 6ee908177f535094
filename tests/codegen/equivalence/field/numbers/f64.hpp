// SPDX-License-Identifier: Apache-2.0
// The f64 numbers of the machine and of the model, with the interface of the field's numbers.
#pragma once
#include <rankc/contract/rope_scaling.hpp>

#include "keys.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace field {

using element = double;

constexpr element add(element a, element b) { return a + b; }
constexpr element negate(element a) { return -a; }
constexpr element multiply(element a, element b) { return a * b; }
/// The inverse; 0 for 0.
constexpr element inverse(element a) { return a == 0 ? 0 : 1 / a; }
constexpr element number(double value) { return value; }

constexpr element larger(element a, element b) { return a < b ? b : a; }

/// Rounding may make equal numbers differ, so no number can be recognised as drawn.
constexpr bool is_drawn(element) { return false; }

/// Draw from -1/2 to 1/2.
constexpr element draw(std::uint64_t key) { return static_cast<double>(mix(key, 0) >> 11) * 0x1p-53 - 0.5; }
/// Draw above 0, at most 1.
constexpr element draw_nonzero(std::uint64_t key) {
  return static_cast<double>((mix(key, 1) >> 11) + 1) * 0x1p-53;
}
/// The same integer as over the field, modulo rounding.
constexpr element draw_below(std::uint64_t key, std::uint64_t count) {
  return static_cast<double>(mix(key, 0) % count);
}

/// The pair whose period has `turns` turns in the first positions. Source: Peng et al. 2023, equation 17.
inline double yarn_pair(double turns, double dim, double theta, const rankc::rope_scaling& s) {
  return dim / 2 * std::log(s.original_positions / (2 * M_PI * turns)) / std::log(theta);
}

/// The cosine or sine of position * theta^(-2 pair / dim), after scaling. llama3 scales a frequency by the
/// length of its period, and yarn by the pair. Source: Su et al. 2021; transformers' modeling_rope_utils.
inline element rotary_number(std::int64_t position, std::int64_t pair, std::int64_t dim, double theta,
                             const rankc::rope_scaling& s, bool sine) {
  const double turned = s.share * static_cast<double>(dim), place = static_cast<double>(pair);
  if (place >= turned / 2) return sine ? 0 : 1;
  double frequency = std::pow(theta, -2.0 * place / turned), amplitude = 1;
  const double length = 2 * M_PI / frequency, whole = s.original_positions;
  if (s.by == rankc::rope_scaling::linear ||
      (s.by == rankc::rope_scaling::llama3 && length > whole / s.low_freq_factor))
    frequency /= s.factor;
  else if (s.by == rankc::rope_scaling::llama3 && length >= whole / s.high_freq_factor) {
    const double smooth = (whole / length - s.low_freq_factor) / (s.high_freq_factor - s.low_freq_factor);
    frequency *= (1 - smooth) / s.factor + smooth;
  } else if (s.by == rankc::rope_scaling::yarn) {
    const double low = std::max(0.0, std::floor(yarn_pair(s.high_freq_factor, turned, theta, s)));
    const double high = std::min(turned - 1, std::ceil(yarn_pair(s.low_freq_factor, turned, theta, s)));
    const double slowed = std::clamp((place - low) / (low == high ? 1e-3 : high - low), 0.0, 1.0);
    frequency *= slowed / s.factor + (1 - slowed);
    amplitude += std::log(s.factor) / 10;
  }
  const double angle = static_cast<double>(position) * frequency;
  return amplitude * (sine ? std::sin(angle) : std::cos(angle));
}

/// Whether two numbers differ by more than rounding at this scale. NaN always differs.
inline bool differ(element a, element b, element scale) { return !(std::abs(a - b) <= 1e-10 * scale); }
inline element largest(const std::vector<element>& all) {
  element most = 0;
  for (element e : all) most = std::max(most, std::abs(e));
  return most;
}

}  // namespace field
