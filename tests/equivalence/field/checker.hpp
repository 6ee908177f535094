// SPDX-License-Identifier: Apache-2.0
// The opinion of the checker over terms, to which the field is the second opinion.
#pragma once
#include <rankc/codegen/program.hpp>
#include <rankc/codegen/prove.hpp>
#include <rankc/codegen/specification.hpp>

#include <string>

namespace field {

/// Why the checker refuses a program of a model; empty: it is accepted.
std::string check_terms(const rankc::codegen::program&, const rankc::codegen::specification&);
/// The same of a program that is proven.
std::string compare_terms(const rankc::codegen::program&, const rankc::codegen::verdict&,
                          const rankc::codegen::specification&);

}  // namespace field
