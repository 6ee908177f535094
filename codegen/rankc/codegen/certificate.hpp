// SPDX-License-Identifier: Apache-2.0
// The certificate of a program: the program itself and an order of its joint events, as JSON, so that someone
// who trusts neither the lowering nor the proof can check both.
#pragma once
#include <rankc/codegen/prove.hpp>

#include <string>

namespace rankc::codegen {

/// Write a program and the witness of its verdict as JSON, one op a line: same program, same bytes.
/// The certificate of a program that was not proven is refused by `verify`, as it should be.
std::string certificate(const program&, const verdict&);

}  // namespace rankc::codegen
