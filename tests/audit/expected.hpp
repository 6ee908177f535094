// SPDX-License-Identifier: Apache-2.0
// The communication in a step that the table of formulas predicts for a rank of a GPT-2 or a Llama.
#pragma once
#include "drawn.hpp"
#include "ledger.hpp"

namespace audit {

/// The account of the ranks at one pipeline coordinate, by the formulas.
account expected(const drawn&, int pp, const std::vector<formula>&, const number_types&);

}  // namespace audit
