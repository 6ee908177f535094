// SPDX-License-Identifier: Apache-2.0
// File names in a folder of weights, as Hugging Face's transformers and PEFT use them. A file of tensors by
// the plan's names has the same name as one of transformers.
#pragma once

namespace rankc::runtime {

inline constexpr const char weights_file[] = "model.safetensors";
inline constexpr const char weights_index_file[] =
    "model.safetensors.index.json";  // lists the tensors of several files
inline constexpr const char config_file[] = "config.json";
inline constexpr const char adapter_file[] = "adapter_model.safetensors";
inline constexpr const char adapter_config_file[] = "adapter_config.json";

}  // namespace rankc::runtime
