// SPDX-License-Identifier: Apache-2.0
// The verdict of the checker over terms, with which the field's verdict is compared.
#pragma once
#include <rankc/codegen/program.hpp>
#include <rankc/codegen/prove.hpp>
#include <rankc/codegen/specification.hpp>

#include <string>

namespace field {

/// The reason why the checker refuses a program; empty if it accepts.
std::string check_terms(const rankc::codegen::program&, const rankc::codegen::specification&);
/// The same for a program whose order is proven.
std::string compare_terms(const rankc::codegen::program&, const rankc::codegen::verdict&,
                          const rankc::codegen::specification&);

}  // namespace field
