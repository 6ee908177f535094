// SPDX-License-Identifier: Apache-2.0
// A sound program that is changed, and why it is refused then.
#pragma once
#include <doctest/doctest.h>

#include "placed.hpp"
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

/// A changed program is refused, for whatever reason.
inline void check_refused(const subject& sound, const std::function<void(subject&)>& change) {
  CHECK(fault(sound, change) != "");
}
/// With the sentence of this id, which is returned.
inline said check_refused(const subject& sound, int id, const std::function<void(subject&)>& change) {
  const said why = placed_of(fault(sound, change)).what;
  CHECK_MESSAGE(why.id == id, toString(why));
  return why;
}
/// With this sentence.
inline void check_refused(const subject& sound, const said& expected,
                          const std::function<void(subject&)>& change) {
  CHECK(placed_of(fault(sound, change)).what == expected);
}
/// With this sentence, of this op.
inline void check_refused(const subject& sound, const placed& expected,
                          const std::function<void(subject&)>& change) {
  CHECK(placed_of(fault(sound, change)) == expected);
}

}  // namespace equivalence_tests
