// SPDX-License-Identifier: Apache-2.0
// fp8 numbers: some by their definition, and all as the nearest to the numbers around them.
#include <doctest/doctest.h>
#include <rankc/contract/fp8.hpp>

#include <cmath>
#include <limits>

namespace fp8_test {

namespace {

using namespace rankc::runtime;

template <class F>
void is(unsigned char code, float number) {
  CHECK(from_fp8<double>(F{code}) == number);
  CHECK(to_fp8<F>(number).bits == code);
}

/// Rounding takes the nearer neighbour, halfway the even one, and beyond the largest number that one, with
/// either sign.
template <class F>
void check_rounding(int largest) {
  for (int code = 0; code < largest; ++code) {
    const auto low = static_cast<unsigned char>(code), high = static_cast<unsigned char>(code + 1);
    const double below = from_fp8<double>(F{low}), above = from_fp8<double>(F{high}),
                 middle = (below + above) / 2;
    REQUIRE(below < above);
    for (const int sign : {0, 0x80}) {
      const auto rounds = [&](double x, int to) {
        CHECK(to_fp8<F>(static_cast<float>(sign ? -x : x)).bits == (sign | to));
      };
      rounds(below, code);
      rounds(std::nextafter(static_cast<float>(middle), 0.0f), code);
      rounds(middle, code % 2 ? code + 1 : code);
      rounds(std::nextafter(static_cast<float>(middle), 1e9f), code + 1);
    }
  }
  CHECK(from_fp8<double>(F{static_cast<unsigned char>(largest)}) == F::largest);
  CHECK(to_fp8<F>(1e9f).bits == largest);
  CHECK(to_fp8<F>(-std::numeric_limits<float>::infinity()).bits == (0x80 | largest));
  CHECK(std::isnan(from_fp8<double>(to_fp8<F>(std::numeric_limits<float>::quiet_NaN()))));
}

}  // namespace

TEST_CASE("numbers of eight bits are what their types say") {
  is<e4m3>(0x00, 0);
  is<e4m3>(0x01, 0x1p-9f);
  is<e4m3>(0x07, 7 * 0x1p-9f);
  is<e4m3>(0x08, 0x1p-6f);
  is<e4m3>(0x38, 1);
  is<e4m3>(0x7E, 448);
  is<e5m2>(0x00, 0);
  is<e5m2>(0x01, 0x1p-16f);
  is<e5m2>(0x04, 0x1p-14f);
  is<e5m2>(0x3C, 1);
  is<e5m2>(0x7B, 57344);
  is<e4m3>(0xB8, -1);
  is<e5m2>(0xBC, -1);
}
TEST_CASE("rounding to eight bits") {
  check_rounding<e4m3>(0x7E);
  check_rounding<e5m2>(0x7B);
}

}  // namespace fp8_test
