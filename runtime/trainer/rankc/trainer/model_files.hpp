// SPDX-License-Identifier: Apache-2.0
// Files and folders of checkpoints and models, and their refusals.
#pragma once
#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace rankc::runtime {

/// Throw the failure of a checkpoint or model file that cannot be read.
[[noreturn]] void fail_to_read(const std::filesystem::path&, int exit_code, const std::string& problem);

/// The bytes of a checkpoint or model file.
/// Errors: failure (`exit_code`) that names the file, also where it has more than `most` bytes.
std::string contents_of_file(const std::filesystem::path&, int exit_code, std::size_t most);

/// Whether a path exists, links followed.
/// Errors: failure (`exit_code`) where the file system does not tell: a loop of links, a name that is too
/// long, a folder that may not be searched.
bool is_there(const std::filesystem::path&, int exit_code);

/// The paths in a folder, in the order of their names.
/// Errors: failure (`exit_code`) where it cannot be read.
std::vector<std::filesystem::path> entries_of(const std::filesystem::path& folder, int exit_code);

/// Whether a text of a file is the plain name of a file: no path, not a folder.
bool is_plain_name(const std::string&);

/// The path of the file that another file of the folder names.
/// Errors: failure (`exit_code`) where the name leads to another folder.
std::filesystem::path file_within(const std::filesystem::path& folder, const std::string& name,
                                  const std::filesystem::path& named_by, int exit_code);

}  // namespace rankc::runtime
