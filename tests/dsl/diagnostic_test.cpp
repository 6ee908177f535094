// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <rankc/base/diagnostic.hpp>

#include <string>

namespace diagnostic_test {

using namespace rankc;

namespace {

template <int Faults, int Length>
struct report_of {
  constexpr report diagnose() const {
    report out;
    for (int i = 0; i < Faults; ++i) {
      sentence& s = refuse(out, 101 + i);
      for (int k = 0; k < Length; ++k) s << "x";
    }
    return out;
  }
};

template <int Faults, int Length>
inline constexpr report_of<Faults, Length> faulty;

static_assert(valid<faulty<0, 0>>);
static_assert(!valid<faulty<1, 0>>, "a rule without words is broken all the same");
static_assert(!valid<faulty<3, 10>>);

template <const auto& Plan>
std::string text() {
  return detail::why<Plan>.text;
}

}  // namespace

TEST_CASE("all sentences are said, each with its number") {
  CHECK(text<faulty<1, 3>>() == "RC101: xxx");
  CHECK(text<faulty<3, 2>>() == "RC101: xx. RC102: xx. RC103: xx");
}

TEST_CASE("text is of exactly its own size") {
  CHECK(sizeof(detail::why<faulty<1, 3>>.text) == sizeof("RC101: xxx"));
}

TEST_CASE("sentences that find no room are counted") {
  const std::string said = text<faulty<9, 1000>>();
  CHECK(said.find("RC103: x") != said.npos);
  CHECK(said.find("RC105: x") == said.npos);
  CHECK(said.ends_with(". And 6 more"));
  CHECK(text<faulty<2, 5000>>() == ". And 2 more");
}

}  // namespace diagnostic_test
