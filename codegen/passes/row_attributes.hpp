// SPDX-License-Identifier: Apache-2.0
// Whether models and programs record the rows and the seq of an op.
#pragma once
#include <rankc/trace/op_row.hpp>

namespace rankc::codegen {

/// Whether a kernel of the row, for either target, takes the number or the length of sequences.
inline bool takes_sequences(const op_row& row) { return row.takes("rows") || row.takes("seq"); }

/// rankc's rows have both recorded even if their kernels take the product alone. They name no header.
inline bool records_sequences(const op_row& row) { return row.header.empty() || takes_sequences(row); }

}  // namespace rankc::codegen
