// SPDX-License-Identifier: Apache-2.0
// Checks a report on mutants: its verdicts, and that it judged harmful mutants at all.
#pragma once
#include "mutations.hpp"

#include <doctest/doctest.h>

#include <string>

namespace rankc::codegen::testing {

/// Require that no harmful mutant is accepted, and that proof and checker agree.
inline void expect_sound(const mutation_report& report) {
  INFO(to_text(report));
  CHECK(report.false_accepts.empty());
  CHECK(report.disagreements.empty());
  for (const auto& text : report.false_accepts) FAIL_CHECK("accepted and harmful: " << text);
  for (const auto& text : report.disagreements) FAIL_CHECK("prove and verify differ: " << text);
}

/// Require the same, and that the mutants test the proof: each of the 15 kinds of mutation makes harmful
/// mutants, most mutants are harmful, few harmless ones are refused, and some mutants are accepted.
inline void expect_sound_and_telling(const mutation_report& report) {
  expect_sound(report);
  CHECK(report.by_kind.size() == 15);
  for (const auto& [kind, tally] : report.by_kind) {
    CAPTURE(kind);
    CHECK(tally.harmful > 0);
  }
  CHECK(report.total.harmful * 10 > report.total.mutants * 8);
  CHECK(report.total.harmless * 100 < report.total.harmful);
  CHECK(report.total.accepted * 100 > report.total.mutants * 3);
}

}  // namespace rankc::codegen::testing
