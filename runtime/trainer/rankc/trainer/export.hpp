// SPDX-License-Identifier: Apache-2.0
// A checkpoint's weights as whole tensors for other programs: as they are, or, of a program that trains parts
// of low rank beside weights, as the dense weights that these stand for; by the plan's names, or as Hugging
// Face has them.
#pragma once
#include <rankc/runtime/program.hpp>

#include <cstddef>
#include <filesystem>

namespace rankc::runtime {

enum class export_format { safetensors, hugging_face };

struct export_options {
  /// w is w + scale b a, summed in f64 and rounded once, and its parts of low rank are left out: the tensors
  /// are those of the same plan without lora.
  bool merge = false;
  export_format format = export_format::safetensors;
  std::size_t file_bytes = 5'000'000'000;  // of Hugging Face's files, where there are several
};

/// Write the weights of a checkpoint to `out`/model.safetensors, in f64 where the program computes in it, in
/// bf16 where it keeps them so in Hugging Face's form, else in f32. Returns: the file, or the folder where it
/// is theirs.
/// Errors: failure (65) where the checkpoint is not this program's, or the file cannot be written; failure
/// (1) where there is
///         nothing to merge, or no table of the model's family.
std::filesystem::path export_weights(const description&, const std::filesystem::path& checkpoint,
                                     const std::filesystem::path& out, const export_options& = {});

}  // namespace rankc::runtime
