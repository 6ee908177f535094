// SPDX-License-Identifier: Apache-2.0
// Checks that apply to every report on mutants.
#pragma once
#include <doctest/doctest.h>

#include "judge.hpp"

namespace field {

/// Require that the checker accepts all unmodified programs and no different one, and that it never throws.
inline void check_report(const report& r) {
  MESSAGE(to_text(r));
  for (const std::string& text : r.wrong_programs)
    FAIL_CHECK("no mutant, and refused or different: " << text);
  for (const std::string& text : r.failures) FAIL_CHECK("the checker failed: " << text);
  for (const std::string& text : r.false_accepts) FAIL_CHECK("accepted and different: " << text);
}

}  // namespace field
