// SPDX-License-Identifier: Apache-2.0
// Checks a result that is rounded to bf16 more than once. Composed operations round in between, and so do
// cuBLASLt's kernels for Hopper if beta = 1: they compute round(round(a b + bias) + c), bit for bit.
#pragma once
#include "../bench.hpp"

namespace rankc::runtime::cuda::test {

/// Check that every element is within one rounding of `wanted`, plus `factor` times one rounding of
/// `intermediate`, plus the error of f32 sums.
template <class T>
void check_twice_rounded(const char* what, const numbers& got, const numbers& wanted,
                         const numbers& intermediate, double factor = 1.0) {
  INFO(what);
  REQUIRE(got.size() == wanted.size());
  REQUIRE(got.size() == intermediate.size());
  const double unit = 2 * half_unit<T>;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double off = std::abs(got[i] - wanted[i]);
    if (off <= 2e-5 + unit * (std::abs(wanted[i]) + factor * std::abs(intermediate[i]))) continue;
    FAIL_CHECK("element " << i << " is " << got[i] << ", wanted " << wanted[i] << ", off by " << off
                          << ", intermediate " << intermediate[i]);
    return;
  }
  CHECK(!got.empty());
}

}  // namespace rankc::runtime::cuda::test
