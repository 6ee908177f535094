// SPDX-License-Identifier: Apache-2.0
// Weights written as a Hugging Face folder.
#pragma once
#include <rankc/trainer/parameters.hpp>
#include <rankc/trainer/tensor_source.hpp>

#include <filesystem>
#include <optional>
#include <vector>

namespace rankc::runtime {

/// Writes config.json and model.safetensors, or several files with an index if one would have more than
/// `file_bytes`. `origin`: the folder that the run began with, or empty.
/// Errors: failure (1) if the model declares no names, or the origin cannot be read; failure (65)
/// where a file cannot be written.
void write_hugging_face(const description&, const std::vector<global_parameter>&, const tensor_source&,
                        const std::optional<std::filesystem::path>& origin,
                        const std::filesystem::path& folder, std::size_t file_bytes);

}  // namespace rankc::runtime
