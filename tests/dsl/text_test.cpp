// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <rankc/base/text.hpp>

#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace text_test {

using namespace rankc;

namespace {

static_assert((sentence{} << "tp=" << 8 << "; " << -12).view() == "tp=8; -12");
static_assert((sentence{} << 0).view() == "0");
static_assert((sentence{} << std::numeric_limits<long long>::min()).view() == "-9223372036854775808");
static_assert((sentence{} << std::numeric_limits<unsigned long long>::max()).view() ==
              "18446744073709551615");
static_assert((sentence{} << 3e-4 << " " << 0.002 << " " << 1e-8 << " " << 989e12).view() ==
              "3e-4 2e-3 1e-8 9.89e14");
static_assert((sentence{} << 0.05 << " " << 0.95 << " " << 0.1 << " " << -1.5).view() ==
              "0.05 0.95 0.1 -1.5");
static_assert((sentence{} << 0.0 << " " << 500000.0 << " " << 1e23).view() == "0 500000 1e23");
static_assert((sentence{} << std::numeric_limits<double>::quiet_NaN()).view() == "nan");
static_assert((sentence{} << -std::numeric_limits<double>::infinity()).view() == "-inf");
static_assert(sentence{}.empty() && (sentence{} << "").empty() && !(sentence{} << 1).empty());

}  // namespace

TEST_CASE("numbers are written as the library writes them") {
  for (long long n : {-1000000007LL, -10LL, -9LL, 9LL, 10LL, 99LL, 100LL, 1234567890123LL})
    CHECK((sentence{} << n).view() == std::to_string(n));
}

namespace {

/// The digits and the exponent that the standard library writes: "9.5e-01" as 95e-1.
std::string scientific(double x) {
  char text[64];
  const auto end = std::to_chars(text, text + sizeof text, x, std::chars_format::scientific).ptr;
  return {text, end};
}

/// Doubles of all sizes: common ones, the ends of the range, powers of two and their neighbours, and
/// arbitrary bits.
std::vector<double> numbers() {
  constexpr double largest = std::numeric_limits<double>::max();
  std::vector<double> all{3e-4,
                          2e-3,
                          6e-5,
                          0.1,
                          0.9,
                          0.95,
                          0.999,
                          1e-8,
                          1e-5,
                          1.0,
                          0.05,
                          0.2,
                          0.3,
                          1e22,
                          1e23,
                          5e-324,
                          2.2250738585072014e-308,
                          largest};
  for (int e = -1074; e <= 1023; ++e) {
    const double power = std::ldexp(1.0, e);
    for (double x : {power, std::nextafter(power, 0), std::nextafter(power, 1e308)})
      if (x > 0) all.push_back(x);
  }
  for (int digits = 1; digits < 1000; ++digits)
    for (double unit : {1e-9, 1e-6, 1e-4, 1e-3, 1e-2, 1e-1, 1e0, 1e3, 1e9}) all.push_back(digits * unit);
  std::mt19937_64 bits(7);
  while (all.size() < 25'000)
    if (const double x = std::bit_cast<double>(bits() >> 1); x > 0 && x <= largest) all.push_back(x);
  return all;
}

}  // namespace

TEST_CASE("doubles have the digits that the library gives them, and are read as they were") {
  int compared = 0;
  for (const double x : numbers()) {
    const detail::decimal d = detail::shortest(x);
    std::string text(d.digits, static_cast<std::size_t>(d.count));
    const int exponent = d.exponent - 1;
    if (d.count > 1) text.insert(1, ".");
    const int size = exponent < 0 ? -exponent : exponent;
    text += (exponent < 0 ? "e-" : "e+") + std::string(size < 10 ? "0" : "") + std::to_string(size);
    REQUIRE(text == scientific(x));

    for (const double value : {x, -x}) {
      const std::string written((sentence{} << value).view());
      double read = 0;
      const auto end = std::from_chars(written.data(), written.data() + written.size(), read);
      REQUIRE((end.ec == std::errc{} && end.ptr == written.data() + written.size() && read == value));
      ++compared;
    }
  }
  CHECK(compared >= 50'000);
}

}  // namespace text_test
