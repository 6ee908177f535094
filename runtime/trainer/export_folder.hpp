// SPDX-License-Identifier: Apache-2.0
// The folder that an export writes. It replaces the files of an earlier export, and touches no others.
#pragma once
#include <rankc/runtime/output_folder.hpp>

#include <filesystem>
#include <optional>

namespace rankc::runtime {

/// Refuses a folder with model files that no export has written. `origin`: the folder that the export copies
/// files from, or empty. A file that equals the origin's copy is allowed.
/// Errors: failure (2) that names these files.
void refuse_other_models(const std::filesystem::path& folder,
                         const std::optional<std::filesystem::path>& origin);

/// Removes the folder's old model, and renames the new files to their final names. config.json or
/// adapter_config.json is renamed last, so a folder that has it has all files of one export.
/// Errors: failure (65).
void replace_model(output_folder&);

}  // namespace rankc::runtime
