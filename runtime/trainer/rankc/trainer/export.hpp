// SPDX-License-Identifier: Apache-2.0
// Export of a checkpoint's weights as whole tensors for other programs, by the plan's names or as a Hugging
// Face folder. LoRA adapters are written unchanged, as a PEFT folder, or merged into the weights.
#pragma once
#include <rankc/runtime/program.hpp>

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace rankc::runtime {

enum class export_format { safetensors, hugging_face };

struct export_options {
  /// Writes w + scale b a for each weight w with adapters a and b, summed in f64, rounded once. The tensors
  /// are those of the same plan without LoRA.
  bool merge = false;
  export_format format = export_format::safetensors;
  std::size_t file_bytes = 5'000'000'000;  // the limit of a Hugging Face file
  /// The Hugging Face folder that the run began with. The export copies from it the values that the plan does
  /// not hold. Empty: the folder that the checkpoint names. "none": no folder.
  std::string source{};
};

/// Writes the weights of a checkpoint to `out`/model.safetensors, or as a Hugging Face folder `out`. For a
/// plan with LoRA adapters that are not merged, the Hugging Face folder is PEFT's. The tensors are f64 if the
/// program computes in f64. They are bf16 in a Hugging Face folder if the program keeps weights in bf16. In
/// all other cases they are f32. `notes` gets sentences on the padding of the vocabulary, on an adapter's
/// base model, and on guarantees that the file system of `out` does not give.
/// Returns: the file, or the Hugging Face folder.
/// Errors: failure (65) if the checkpoint is not this program's, or a file cannot be written; failure (1) if
/// the options do not fit the plan, its model has no Hugging Face names, or the source is gone; failure (2)
/// if `out` has a model that no export has written.
std::filesystem::path export_weights(const description&, const std::filesystem::path& checkpoint,
                                     const std::filesystem::path& out, const export_options& = {},
                                     std::vector<std::string>* notes = nullptr);

}  // namespace rankc::runtime
