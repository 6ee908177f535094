// SPDX-License-Identifier: Apache-2.0
// The commands of `rankc` that read no lines. Each returns the exit code and throws nothing.
#pragma once
#include <filesystem>
#include <iosfwd>
#include <string>

namespace rankc::tool {

/// Writes a starter project into `folder`, which is made if it does not exist. `name`: the name of its
/// program; empty: that of the folder.
/// Errors: 1, with one sentence and nothing written, if a file is there already or the name cannot be a
/// target's.
int init(const std::filesystem::path& folder, std::string name, std::ostream& out, std::ostream& errors);

/// Prints the long form of a rule ("RC201", "rc201" or "201"). If `id` is empty, prints one line for each
/// rule.
/// Errors: 1 if there is no such rule.
int explain(const std::string& id, std::ostream& out, std::ostream& errors);

}  // namespace rankc::tool
