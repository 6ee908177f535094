// SPDX-License-Identifier: Apache-2.0
// The opinion of the checker over terms, which the field is the second opinion to.
#pragma once
#include <rankc/codegen/program.hpp>
#include <rankc/codegen/specification.hpp>

#include <string>

namespace field {

/// Why the checker refuses a program of a model; nothing: it is accepted.
std::string check_terms(const rankc::codegen::program&, const rankc::codegen::specification&);

}  // namespace field
