// SPDX-License-Identifier: Apache-2.0
// Writes the files of a command: all of them, or none.
#pragma once
#include <filesystem>
#include <map>
#include <string>

namespace rankc::codegen {

/// Makes a folder and its missing parents.
/// Errors: RC7911.
void make_folder(const std::filesystem::path& folder);

/// Writes files, name -> text, into a folder that exists. All are on disk before one has its name. Files that
/// have their text already stay untouched, so that nothing downstream is built again.
/// Returns: true if a file has changed.
/// Errors: failure (1) that names the file. No file has changed then, unless the last renames fail.
bool write_files(const std::filesystem::path& folder, const std::map<std::string, std::string>& files);

}  // namespace rankc::codegen
