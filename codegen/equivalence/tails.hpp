// SPDX-License-Identifier: Apache-2.0
// Tails: bytes behind the tensors of an optimizer or a norm. Its kernel processes whole multiples of
// elements, so it reads and writes these bytes too.
#pragma once
#include <rankc/codegen/equivalence.hpp>
#include <rankc/codegen/program.hpp>

namespace rankc::codegen::algebra {

/// Whether a write of an op is padding.
inline bool is_padding(const op& o, std::size_t write) {
  return write < o.holds.size() && o.holds[write].kind == holding_kind::padding;
}

byte_ranges tails_of(const rank_program&);
/// Whether an access overlaps a range.
bool meets(const byte_ranges&, const access&);

}  // namespace rankc::codegen::algebra
