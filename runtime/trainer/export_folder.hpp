// SPDX-License-Identifier: Apache-2.0
// The folder that an export writes: files of an earlier export give way to the new ones, and others are not
// touched.
#pragma once
#include <rankc/runtime/output_folder.hpp>

namespace rankc::runtime {

/// Errors: failure (2) that names the files of a model there that no export has written.
void refuse_other_models(const std::filesystem::path& folder);

/// Remove the model that is there and give the new files their names, config.json last: a folder that has it
/// has all of one export.
/// Errors: failure (65).
void replace_model(output_folder&);

}  // namespace rankc::runtime
