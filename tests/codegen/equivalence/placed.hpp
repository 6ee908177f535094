// SPDX-License-Identifier: Apache-2.0
// Why a program is refused: the place at the beginning of the reason, and the message after it.
#pragma once
#include <doctest/doctest.h>

#include <string>
#include <string_view>

#include "../../said.hpp"

namespace equivalence_tests {

using rankc::test::said;

/// The place, such as "rank 3, 1B0: layers.2: linear", and the sentence; both are empty if a program is
/// accepted.
struct placed {
  std::string place;
  said what;

  bool operator==(const placed&) const = default;
};

inline doctest::String toString(const placed& p) {
  return (p.place + ": ").c_str() + rankc::test::toString(p.what);
}

inline placed placed_of(std::string_view reason) {
  const said what = rankc::test::said_in(reason);
  if (what.id == 0) return {std::string(reason), {}};
  const std::size_t end = reason.find("RC" + std::to_string(what.id));
  return {std::string(reason.substr(0, end > 2 ? end - 2 : 0)), what};
}

}  // namespace equivalence_tests
