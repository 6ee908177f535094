// SPDX-License-Identifier: Apache-2.0
// Rows called by other rows.
#pragma once
#include "laws.hpp"

namespace rankc::test::rows {

/// The sizes of a row that is given ports of these shapes; what they do not say (null) has the sizes of `s`.
setting setting_for(const row& of, const setting& s, const std::vector<const std::vector<extent>*>& shapes);

}  // namespace rankc::test::rows
