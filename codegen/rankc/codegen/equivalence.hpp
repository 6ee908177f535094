// SPDX-License-Identifier: Apache-2.0
// Whether the programs of all ranks together compute what the model is on one device.
#pragma once
#include <rankc/codegen/program.hpp>
#include <rankc/codegen/prove.hpp>
#include <rankc/codegen/specification.hpp>

#include <string>
#include <vector>

namespace rankc::codegen {

struct equivalence {
  bool holds = false;
  bool has_unknown_row = false;  // an op is of a row of which the checker has no facts: nothing is claimed
  std::vector<std::string> reasons;  // why not: the op, the tensor, what was expected and what was found
  std::vector<std::string> claims;   // what holds, as sentences
};

/// Interpret a program over terms and compare what is left at its end with the specification. `order` is a
/// verdict of the program: an order of its ops in which every read follows the write of its value.
equivalence check_equivalence(const program&, const verdict& order, const specification&);

}  // namespace rankc::codegen
