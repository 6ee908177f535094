// SPDX-License-Identifier: Apache-2.0
// Rows made of other rows.
#pragma once
#include "laws.hpp"

namespace rankc::test::rows {

/// The sizes of a row that is given ports of these shapes; what they do not say (null) has the sizes of `s`.
setting setting_for(const row& of, const setting& s, const std::vector<const std::vector<extent>*>& shapes);

/// A row and what its ports are, by names: results first.
struct row_call {
  const row* of;
  std::vector<std::string> ports;
};
/// What calls, one after another, make of a row's operands; its ports go by `ports`. A row that the machine
/// has no kernel of is made by `otherwise`.
using maker = operands (*)(machine&, const row&, const setting&, const operands&);
operands by_calls(machine&, const row&, const setting&, const operands& given,
                  const std::vector<std::string>& ports, const std::vector<row_call>&, maker otherwise);
/// The same of calls that the facts name.
operands by_definition(machine&, const row&, const setting&, const operands& given);

}  // namespace rankc::test::rows
