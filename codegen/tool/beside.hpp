// SPDX-License-Identifier: Apache-2.0
// Programs that are installed in the folder of `rankc`.
#pragma once
#include <iosfwd>
#include <string>
#include <vector>

namespace rankc::tool {

/// Become the program of this name that lies in this program's folder.
/// Errors: returns 1, with RC8127, where it cannot be run.
int become(const std::string& name, const std::vector<std::string>& arguments, std::ostream& errors);

}  // namespace rankc::tool
