// SPDX-License-Identifier: Apache-2.0
// Access to the files and folders of checkpoints and models, with errors that name them.
#pragma once
#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace rankc::runtime {

/// Throws the failure for a checkpoint or model file that cannot be read.
[[noreturn]] void fail_to_read(const std::filesystem::path&, int exit_code, const std::string& problem);

/// The bytes of a checkpoint or model file.
/// Errors: failure (`exit_code`) that names the file if it cannot be read or has more than `most` bytes.
std::string contents_of_file(const std::filesystem::path&, int exit_code, std::size_t most);

/// True if a path exists, links followed.
/// Errors: failure (`exit_code`) if the file system cannot answer: a loop of links, a name that is too long,
/// a folder without search permission.
bool is_there(const std::filesystem::path&, int exit_code);

/// The file that makes a folder one of a model or of adapters; empty if there is none.
std::filesystem::path find_model_file(const std::filesystem::path& folder, int exit_code);

/// The paths in a folder, sorted by name.
/// Errors: failure (`exit_code`) if it cannot be read.
std::vector<std::filesystem::path> entries_of(const std::filesystem::path& folder, int exit_code);

/// True if a text from a file is a plain file name, without a folder.
bool is_plain_name(const std::string&);

/// The path of a file in `folder` that another file there names.
/// Errors: failure (`exit_code`) if the name leads to another folder.
std::filesystem::path file_within(const std::filesystem::path& folder, const std::string& name,
                                  const std::filesystem::path& named_by, int exit_code);

}  // namespace rankc::runtime
