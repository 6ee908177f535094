// SPDX-License-Identifier: Apache-2.0
// Judges mutants of programs by a checker and by all oracles. The report lists the mutants that the checker
// accepts although an oracle finds a difference.
#pragma once
#include "opinions.hpp"
#include "../plans/plans.hpp"

#include <map>
#include <string>
#include <vector>

namespace field {

struct tally {
  int mutants = 0, different = 0;  // different over the field
  int no_program = 0;              // part of `different`: sizes do not fit, or ranks do not meet
  int proven = 0;                  // accepted by the proof of order, races and sums alone
  int proven_wrong = 0;            // part of `proven`: different over the field
  int accepted = 0;
  int refused_equal = 0;  // refused, but equal by every oracle
  int different_f64 = 0;
  int field_only = 0;  // different over the field, but not in f64
  int f64_only = 0;    // different in f64, but not over the field
  int harmful = 0;     // equal in both, but harmful in an interleaving
};

struct report {
  tally total;
  std::map<std::string, tally> by_kind;
  std::vector<std::string> wrong_programs;  // unmodified programs that are refused or different
  std::vector<std::string> failures;        // exceptions of the checker
  std::vector<std::string> false_accepts;   // accepted, but different: mutant, then difference
  std::map<std::string, std::vector<std::string>> strict;  // refused, but equal: by kind, mutant and reason
  std::map<std::string, std::vector<std::string>> field_only, f64_only;  // by kind, mutant and difference
};

/// Judge `count` mutants of programs. A program that is itself refused or different is reported, not mutated.
report judge_mutants(const std::vector<subject>&, const opinion& checker, int count, unsigned seed);

/// The report with a line per kind.
std::string to_text(const report&);

}  // namespace field
