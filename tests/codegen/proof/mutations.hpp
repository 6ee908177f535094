// SPDX-License-Identifier: Apache-2.0
// Breaks a right program in one place at a time and asks the proof, the checker and the execution model what
// they think of it. Works on any program, made by hand or lowered.
#pragma once
#include <rankc/codegen/program.hpp>

#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace rankc::codegen::testing {

struct mutation_tally {
  int mutants = 0, accepted = 0;
  int harmful = 0;   // rejected, and an interleaving shows the harm
  int harmless = 0;  // rejected, and none was found
};

struct mutation_report {
  mutation_tally total;
  std::map<std::string, mutation_tally> by_kind;
  std::vector<std::string> false_accepts;  // accepted, but an interleaving does harm
  std::vector<std::string> disagreements;  // between proof and checker
  std::vector<std::string> strict;         // rejected, but harmless: mutation, then reason
};

/// What was done to a program.
struct mutation {
  std::string kind, text;
};

/// Change one thing; returns an empty kind where the draw found nothing to change.
mutation mutate(program&, std::mt19937&);
/// The same: one field gets another value.
mutation mutate_field(program&, std::mt19937&);
/// The same: ops, waits or buffers change places, are left out or come twice.
mutation mutate_structure(program&, std::mt19937&);

/// Take the collectives out that a name satisfies, on all ranks, as if nobody had thought of them: what read
/// their results reads what they read.
void remove_collectives(program&, const std::function<bool(const std::string&)>& named);

/// What proof, checker and model say of one program, added to the report under `kind`.
void judge(const program&, const mutation&, unsigned seed, mutation_report&);

/// Judge `count` mutants of a program.
mutation_report run_mutations(const program&, int count, unsigned seed);

mutation_report& operator+=(mutation_report& sum, const mutation_report& one);

/// A line per kind, for a test's output.
std::string to_text(const mutation_report&);

}  // namespace rankc::codegen::testing
