// SPDX-License-Identifier: Apache-2.0
// LoRA adapters as a PEFT folder, which PEFT adds to a transformers model.
#pragma once
#include <rankc/trainer/parameters.hpp>
#include <rankc/trainer/tensor_source.hpp>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace rankc::runtime {

/// Writes adapter_config.json and adapter_model.safetensors. Other trained parameters become modules_to_save.
/// `origin`: the folder that the run began with, or empty. `base`: the base model's name in the config;
/// empty: null.
/// Source: PEFT, LoraConfig, tuners/lora/layer.py and utils/save_and_load.py.
/// Errors: failure (1) if PEFT cannot express what the plan trains, or the model has no Hugging Face names;
/// failure (65) if a file cannot be written.
void write_peft_adapter(const description&, const std::vector<global_parameter>&, const tensor_source&,
                        const std::optional<std::filesystem::path>& origin, const std::string& base,
                        const std::filesystem::path& folder);

/// True if an export wrote the adapter_config.json and nobody has changed it since.
bool is_our_adapter_config(const std::filesystem::path& file);

}  // namespace rankc::runtime
