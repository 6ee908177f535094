// SPDX-License-Identifier: Apache-2.0
// Runs programs that are installed in the folder of `rankc`.
#pragma once
#include <iosfwd>
#include <string>
#include <vector>

namespace rankc::tool {

/// Replaces this process by the program of this name in this program's folder.
/// Errors: returns 1, with RC8127, if it cannot be run.
int become(const std::string& name, const std::vector<std::string>& arguments, std::ostream& errors);

}  // namespace rankc::tool
