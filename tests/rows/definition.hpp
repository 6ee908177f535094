// SPDX-License-Identifier: Apache-2.0
// Rows composed of other rows.
#pragma once
#include "laws.hpp"

namespace rankc::test::rows {

/// The sizes of a row on ports of these shapes. Sizes that no shape determines (null) are those of `s`.
setting setting_for(const row& of, const setting& s, const std::vector<const std::vector<extent>*>& shapes);

/// A row and the names of its ports, results first.
struct row_call {
  const row* of;
  std::vector<std::string> ports;
};
/// Run calls one after another in place of a row's kernel; `ports` are the names of the row's ports in the
/// calls. `otherwise` runs rows without a kernel on this machine.
using maker = operands (*)(machine&, const row&, const setting&, const operands&);
operands by_calls(machine&, const row&, const setting&, const operands& given,
                  const std::vector<std::string>& ports, const std::vector<row_call>&, maker otherwise);
/// The same for the calls that the facts name.
operands by_definition(machine&, const row&, const setting&, const operands& given);

}  // namespace rankc::test::rows
