// SPDX-License-Identifier: Apache-2.0
// The bound on the probability that a check accepts a program that does not compute the model.
#pragma once
#include <rankc/codegen/program.hpp>
#include <rankc/codegen/specification.hpp>

namespace rankc::codegen::algebra {

/// The bound for a program that was written before the fields were drawn; README.md derives it. `known`: the
/// number of the model's terms.
double chance_of_wrong_accept(const program&, const specification&, std::size_t known);

}  // namespace rankc::codegen::algebra
