// SPDX-License-Identifier: Apache-2.0
// Decides whether models and programs record the rows and the seq of an op.
#pragma once
#include <rankc/trace/op_row.hpp>

namespace rankc::codegen {

/// True if a kernel of the row, for either target, takes the number or the length of sequences.
inline bool takes_sequences(const op_row& row) { return row.takes("rows") || row.takes("seq"); }

/// For rankc's own rows, which name no header, both are recorded even if the kernels take only the product.
inline bool records_sequences(const op_row& row) { return row.header.empty() || takes_sequences(row); }

}  // namespace rankc::codegen
