// SPDX-License-Identifier: Apache-2.0
// Breaks a correct program in one place at a time, and compares the verdicts of the proof, the checker and
// the execution model. Programs may be handmade or lowered.
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
  int harmless = 0;  // rejected, and no interleaving shows harm
};

struct mutation_report {
  mutation_tally total;
  std::map<std::string, mutation_tally> by_kind;
  std::vector<std::string> false_accepts;  // accepted, but an interleaving does harm
  std::vector<std::string> disagreements;  // between proof and checker
  std::vector<std::string> strict;         // rejected, but harmless: mutation, then reason
};

/// A mutation: its kind, and a description of the change.
struct mutation {
  std::string kind, text;
};

/// Change one thing. Returns: an empty kind if the draw found nothing to change.
mutation mutate(program&, std::mt19937&);
/// The same, for one field's value.
mutation mutate_field(program&, std::mt19937&);
/// The same, for ops, waits or buffers that are exchanged, removed or doubled.
mutation mutate_structure(program&, std::mt19937&);

/// Remove on all ranks the collectives whose names match, as if they had been forgotten: readers of their
/// results read their inputs.
void remove_collectives(program&, const std::function<bool(const std::string&)>& named);

/// Ask proof, checker and model about one program, and add their answers to the report under `kind`.
void judge(const program&, const mutation&, unsigned seed, mutation_report&);

/// Judge `count` mutants of a program.
mutation_report run_mutations(const program&, int count, unsigned seed);

mutation_report& operator+=(mutation_report& sum, const mutation_report& one);

/// A line per kind, for a test's output.
std::string to_text(const mutation_report&);

}  // namespace rankc::codegen::testing
