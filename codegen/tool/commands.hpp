// SPDX-License-Identifier: Apache-2.0
// The commands of `rankc` that read no lines. Each returns the exit code and throws nothing.
#pragma once
#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <optional>
#include <string>

namespace rankc::tool {

/// Write a starter project into `folder`, which is made where it does not exist. `name` is that of its
/// program; empty: the folder's.
/// Errors: 1, one sentence and nothing written, where a file is there already or the name cannot be a
/// target's.
int init(const std::filesystem::path& folder, std::string name, std::ostream& out, std::ostream& errors);

/// Check a certificate, and print whose it is, what it claims and what is trusted. The same seed repeats a
/// check; without one it is drawn.
/// Errors: 1 where it is refused or unreadable; 3 where its programs are not compared with a model.
int verify(const std::filesystem::path& file, std::optional<std::uint64_t> seed, std::ostream& out,
           std::ostream& errors);

/// Print the long form of a rule ("RC201", "rc201" or "201"), or where `id` is empty one line for each.
/// Errors: 1 where there is no such rule.
int explain(const std::string& id, std::ostream& out, std::ostream& errors);

}  // namespace rankc::tool
