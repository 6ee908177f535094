// SPDX-License-Identifier: Apache-2.0
// The names that files have in a folder of weights: Hugging Face's, and one by the plan's names.
#pragma once

namespace rankc::runtime {

inline constexpr const char weights_file[] = "model.safetensors";
inline constexpr const char weights_index_file[] = "model.safetensors.index.json";  // of several files
inline constexpr const char config_file[] = "config.json";

}  // namespace rankc::runtime
