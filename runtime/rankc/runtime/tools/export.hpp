// SPDX-License-Identifier: Apache-2.0
// A checkpoint's weights as one file for other programs: as they are, or, of a program that trains parts of low rank beside
// weights, as the dense weights that these stand for.
#pragma once
#include <rankc/runtime/program.hpp>

#include <filesystem>

namespace rankc::runtime {

/// Write the weights of a checkpoint to `out`/model.safetensors, in f64 where the program computes in it, else in f32. Merged,
/// w is w + scale b a, summed in f64 and rounded once, and its parts of low rank are left out: the tensors are those of the
/// same plan without lora.
/// Errors: failure (65) where the checkpoint is not this program's, or the file cannot be written; failure (1) where there is
///         nothing to merge.
std::filesystem::path export_weights(const description&, const std::filesystem::path& checkpoint, const std::filesystem::path& out,
                                     bool merge);

}  // namespace rankc::runtime
