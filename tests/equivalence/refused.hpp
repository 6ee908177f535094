// SPDX-License-Identifier: Apache-2.0
// A sound program that is changed, and why it is refused then.
#pragma once
#include <doctest/doctest.h>

#include "subject.hpp"

#include <functional>
#include <string>

namespace equivalence_tests {

/// Why a changed program is refused; "": it is not.
inline std::string fault(const subject& sound, const std::function<void(subject&)>& change) {
  subject s = sound;
  change(s);
  return s.reason();
}

/// A changed program is refused, for a reason with these words.
inline void check_refused(const subject& sound, const std::string& expected,
                          const std::function<void(subject&)>& change) {
  const std::string why = fault(sound, change);
  CHECK_MESSAGE((!why.empty() && why.find(expected) != why.npos),
                "expected \"" << expected << "\", found \"" << why << "\"");
}

}  // namespace equivalence_tests
