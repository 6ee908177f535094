// SPDX-License-Identifier: Apache-2.0
// Files that must survive a crash: written whole, and on disk before anything refers to them.
#pragma once
#include <filesystem>
#include <string_view>

namespace rankc::runtime {

/// Write a small file and wait until it is on disk.
/// Errors: failure (65) that names the file, here and below.
void write_durably(const std::filesystem::path& file, std::string_view text);

/// Rename a file or folder, and wait until its parent folder says so on disk.
void rename_durably(const std::filesystem::path& from, const std::filesystem::path& to);

/// Let two files or folders of one folder change names at one moment, and wait until it says so on disk.
/// Returns: false where the file system cannot, and nothing has changed.
bool exchange_durably(const std::filesystem::path& one, const std::filesystem::path& other);

/// Wait until the entries of a folder are on disk.
void flush_folder(const std::filesystem::path& folder);

}  // namespace rankc::runtime
