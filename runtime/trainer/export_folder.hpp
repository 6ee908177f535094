// SPDX-License-Identifier: Apache-2.0
// The folder that an export writes. It replaces the files of an earlier export, and touches no others.
#pragma once
#include <rankc/runtime/output_folder.hpp>

#include <filesystem>
#include <optional>

namespace rankc::runtime {

/// Refuse a folder with files of a model that no export has written. `origin`: the folder that the export
/// copies files from, or empty; an equal copy of one is no other model's.
/// Errors: failure (2) that names these files.
void refuse_other_models(const std::filesystem::path& folder,
                         const std::optional<std::filesystem::path>& origin);

/// Remove the model that is there, and give the new files their names. config.json, or adapter_config.json,
/// is the last, so a folder that has it has all files of one export.
/// Errors: failure (65).
void replace_model(output_folder&);

}  // namespace rankc::runtime
