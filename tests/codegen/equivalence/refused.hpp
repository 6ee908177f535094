// SPDX-License-Identifier: Apache-2.0
// Changes a sound program, and returns the reason of its refusal.
#pragma once
#include <doctest/doctest.h>

#include "placed.hpp"
#include "subject.hpp"

#include <functional>
#include <string>

namespace equivalence_tests {

/// The reason why a changed program is refused; empty if it is accepted.
inline std::string fault(const subject& sound, const std::function<void(subject&)>& change) {
  subject s = sound;
  change(s);
  return s.reason();
}

/// Require that a changed program is refused, for any reason.
inline void check_refused(const subject& sound, const std::function<void(subject&)>& change) {
  CHECK(fault(sound, change) != "");
}
/// Require a refusal with the sentence of this id. Returns: the sentence.
inline said check_refused(const subject& sound, int id, const std::function<void(subject&)>& change) {
  const said why = placed_of(fault(sound, change)).what;
  CHECK_MESSAGE(why.id == id, toString(why));
  return why;
}
/// Require a refusal with this sentence.
inline void check_refused(const subject& sound, const said& expected,
                          const std::function<void(subject&)>& change) {
  CHECK(placed_of(fault(sound, change)).what == expected);
}
/// Require a refusal with this sentence, at this op.
inline void check_refused(const subject& sound, const placed& expected,
                          const std::function<void(subject&)>& change) {
  CHECK(placed_of(fault(sound, change)) == expected);
}

/// A change of all ops of a row, on all ranks.
inline auto change_all(const char* row, auto change) {
  return [=](subject& s) {
    int changes = 0;
    for (rank_program& r : s.p.ranks)
      for (op& o : r.ops)
        if (o.row == row) {
          change(o);
          ++changes;
        }
    CHECK(changes > 0);
  };
}

}  // namespace equivalence_tests
