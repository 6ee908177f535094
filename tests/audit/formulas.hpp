// SPDX-License-Identifier: Apache-2.0
// The table of formulas: the communication of every technique, from the literature and other systems' code.
// Its README has the sources.
#pragma once
#include "fraction.hpp"

#include <string>
#include <vector>

namespace audit {

struct formula {
  int id = 0;
  std::string technique, variant, phase, scope, op, axis, count, elements, sent, type, evidence;
};

/// Read all rows of the file.
/// Errors: std::runtime_error if it is malformed.
std::vector<formula> read_formulas(const std::string& path);

/// The row with this number.
/// Errors: std::out_of_range.
const formula& find(const std::vector<formula>&, int id);

}  // namespace audit
