// SPDX-License-Identifier: Apache-2.0
// LoRA adapters as a folder of PEFT, which adds them to a model of transformers.
#pragma once
#include <rankc/trainer/parameters.hpp>
#include <rankc/trainer/tensor_source.hpp>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace rankc::runtime {

/// Write adapter_config.json and adapter_model.safetensors. Other parameters that are trained are
/// modules_to_save. `origin`: the folder that the run began with, or empty. `base`: the name of the base
/// model; null in the config where it is empty.
/// Source: PEFT, LoraConfig, tuners/lora/layer.py and utils/save_and_load.py.
/// Errors: failure (1) where PEFT has no form for what the plan trains, or the model's family has no tables;
/// failure (65) where a file cannot be written.
void write_peft_adapter(const description&, const std::vector<global_parameter>&, const tensor_source&,
                        const std::optional<std::filesystem::path>& origin, const std::string& base,
                        const std::filesystem::path& folder);

/// Whether an export wrote an adapter_config.json, and nobody has changed it since.
bool is_our_adapter_config(const std::filesystem::path& file);

}  // namespace rankc::runtime
