// SPDX-License-Identifier: Apache-2.0
// Files that a command writes: all of them whole, or none.
#pragma once
#include <filesystem>
#include <map>
#include <string>

namespace rankc::codegen {

/// Write files, name -> text, into a folder that exists. All are on disk before one has its name; those that
/// have their text already are left alone, so that nothing downstream is built again.
/// Returns: whether a file has changed.
/// Errors: failure (1) that names the file; no file has changed then, unless the last renames fail.
bool write_files(const std::filesystem::path& folder, const std::map<std::string, std::string>& files);

}  // namespace rankc::codegen
