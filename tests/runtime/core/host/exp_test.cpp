// SPDX-License-Identifier: Apache-2.0
// The exponential of the host kernels against the C library's.
#include "../../../../runtime/core/host/exp.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

namespace exp_test {

using rankc::runtime::host::exponential;

TEST_CASE("the f64 exponential is within 2 ulp of the C library's") {
  for (double x = -707.9; x < 708.9; x += 0.0137) {
    CAPTURE(x);
    CHECK(std::abs(exponential(x) / std::exp(x) - 1) < 4.5e-16);
  }
  CHECK(exponential(0.0) == 1.0);
}

TEST_CASE("the f32 exponential is within 2 ulp of the exact value") {
  for (float x = -86.9f; x < 87.9f; x += 0.0037f) {
    CAPTURE(x);
    CHECK(std::abs(exponential(x) / std::exp(static_cast<double>(x)) - 1) < 2.4e-7);
  }
  CHECK(exponential(0.0f) == 1.0f);
}

TEST_CASE("the exponential outside its range ends at the bounds, and NaN stays NaN") {
  CHECK(exponential(-1e300) < 1e-307);
  CHECK(exponential(-std::numeric_limits<double>::infinity()) < 1e-307);
  CHECK(exponential(1e300) > 1e307);
  CHECK(exponential(-1e30f) < 1e-37f);
  CHECK(exponential(1e30f) > 1e38f);
  CHECK(std::isnan(exponential(std::numeric_limits<double>::quiet_NaN())));
  CHECK(std::isnan(exponential(std::numeric_limits<float>::quiet_NaN())));
}

}  // namespace exp_test
