// SPDX-License-Identifier: Apache-2.0
// The places of a step that the text of its calls does not contain.
#pragma once
#include <rankc/codegen/program.hpp>
#include <rankc/runtime/hashed_places.hpp>

namespace rankc::codegen {

/// The places of a rank and the kernels of its step, as a program hashes them when it starts. `rows`: the
/// hash of the rows that the ranks of its program begin with.
runtime::hashed_places hashed_places_of(const rank_program&, const kernel_set&, std::uint64_t rows);

}  // namespace rankc::codegen
