// SPDX-License-Identifier: Apache-2.0
// The commands of `rankc` that read no lines. Each returns the exit code and throws nothing.
#pragma once
#include <filesystem>
#include <iosfwd>
#include <string>

namespace rankc::tool {

/// Write a starter project into `folder`, which is made where it does not exist. `name` is that of its
/// program; empty: the folder's.
/// Errors: 1, one sentence and nothing written, where a file is there already or the name cannot be a
/// target's.
int init(const std::filesystem::path& folder, std::string name, std::ostream& out, std::ostream& errors);

/// Print the long form of a rule ("RC201", "rc201" or "201"), or where `id` is empty one line for each.
/// Errors: 1 where there is no such rule.
int explain(const std::string& id, std::ostream& out, std::ostream& errors);

}  // namespace rankc::tool
