// SPDX-License-Identifier: Apache-2.0
// The files that a path of --data names.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace rankc::runtime {

struct data_files {
  std::vector<std::filesystem::path> files;  // sorted by path
  std::vector<std::string> skipped;          // "NAME (reason)"
};

/// True if the path exists, also if it is a link to nothing. A name that is longer than names can be, such as
/// a list of many sources, does not exist.
/// Errors: std::filesystem::filesystem_error, for example for a folder that may not be searched.
bool has_entry(const std::filesystem::path&);

/// Finds the files of a path: the file itself, the files that match a pattern, or all files below a folder.
/// Links to files are followed. A folder skips names that begin with a dot, what runs have written
/// (checkpoints, exported models, metrics, traces), links to folders, and links to its own files, which it
/// reads once.
/// Errors: failure (1) for a folder that cannot be read and a pattern that matches nothing.
data_files find_data_files(const std::filesystem::path&);

}  // namespace rankc::runtime
