// SPDX-License-Identifier: Apache-2.0
// A program with the model that it must compute, and mutants of the two.
#pragma once
#include "../machine/execution.hpp"
#include "mutants.hpp"
#include "../plans/plans.hpp"

#include <memory>
#include <random>
#include <string>

namespace field {

/// A program, its model, and the runs of that model.
struct judged {
  std::string name;
  rankc::codegen::program program;
  rankc::codegen::specification model;
  std::shared_ptr<const execution::model> exact, f64;  // null: the model does not run
  std::shared_ptr<const execution::loader> loads;
};
judged judged_of(const subject&);

/// The faults of a mutant: one fault in a field, one edit of the structure, or two faults of any form.
enum class mutant_form { field, structure, two };
inline constexpr const char* mutant_form_names[]{"one field", "structure", "two faults"};

struct mutant {
  judged of;
  mutant_form form;
  fault what;
};

/// A quarter of the mutants have a fault in one field, half have an edit of the structure, and a quarter have
/// two faults that may hide each other. An eighth of the faults are of the kinds that test the proof of
/// order, and an eighth are in the model.
mutant draw_mutant(const judged&, std::mt19937&);

}  // namespace field
