// SPDX-License-Identifier: Apache-2.0
// Mutants of a program, each run over the field and in f64 and shown to a checker: what the checker accepts
// leaves what the model does.
#pragma once
#include "plans.hpp"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace field {

/// Why a program of a model is refused; nothing: it is accepted.
using opinion =
    std::function<std::string(const rankc::codegen::program&, const rankc::codegen::specification&)>;

struct tally {
  int mutants = 0, different = 0;
  int no_program = 0;    // of the different: their sizes do not fit, their ranks do not meet
  int proven = 0;        // accepted by the proof of order, races and sums alone
  int proven_wrong = 0;  // of those, different
  int accepted = 0;
  int refused_equal = 0;  // refused, though the field sees no difference
  int different_f64 = 0;  // in f64
  int field_only = 0;     // different over the field, and not in f64
  int f64_only = 0;       // and the other way round
};

struct report {
  tally total;
  std::map<std::string, tally> by_kind;
  std::vector<std::string> wrong_programs;                 // that are no mutants: refused, or different
  std::vector<std::string> failures;                       // of the checker, which came to no opinion
  std::vector<std::string> false_accepts;                  // accepted, and different: mutant, then difference
  std::map<std::string, std::vector<std::string>> strict;  // refused though equal: by kind, mutant and reason
  std::map<std::string, std::vector<std::string>> field_only, f64_only;  // by kind, mutant and difference
};

/// Judge so many mutants of programs by a checker beside the proof of order: those that the proof is tested
/// with, and those of what is computed. There are none of a program that is itself refused or different.
report judge_mutants(const std::vector<subject>&, const opinion& checker, int count, unsigned seed);

/// A line per kind.
std::string to_text(const report&);

}  // namespace field
