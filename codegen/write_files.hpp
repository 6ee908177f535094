// SPDX-License-Identifier: Apache-2.0
// Files that a command writes: all of them whole, or none.
#pragma once
#include <filesystem>
#include <map>
#include <string>

namespace rankc::codegen {

/// Make a folder, and those that it is in, where they are not there.
/// Errors: RC7911.
void make_folder(const std::filesystem::path& folder);

/// Write files, name -> text, into a folder that exists. All are on disk before one has its name; those that
/// have their text already are left alone, so that nothing downstream is built again.
/// Returns: whether a file has changed.
/// Errors: failure (1) that names the file; no file has changed then, unless the last renames fail.
bool write_files(const std::filesystem::path& folder, const std::map<std::string, std::string>& files);

}  // namespace rankc::codegen
