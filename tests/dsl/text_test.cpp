// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <rankc/text.hpp>

#include <limits>
#include <string>

using namespace rankc;

namespace {

static_assert((sentence{} << "tp=" << 8 << "; " << -12).view() == "tp=8; -12");
static_assert((sentence{} << 0).view() == "0");
static_assert((sentence{} << std::numeric_limits<long long>::min()).view() == "-9223372036854775808");
static_assert((sentence{} << std::numeric_limits<unsigned long long>::max()).view() == "18446744073709551615");
static_assert(sentence{}.empty() && (sentence{} << "").empty() && !(sentence{} << 1).empty());

}  // namespace

TEST_CASE("numbers are written as the library writes them") {
  for (long long n : {-1000000007LL, -10LL, -9LL, 9LL, 10LL, 99LL, 100LL, 1234567890123LL})
    CHECK((sentence{} << n).view() == std::to_string(n));
}
