// SPDX-License-Identifier: Apache-2.0
// The tensors of a checkpoint. Each region of each parameter is a tensor, and its pieces are in the files of
// the ranks. The index is computed from a program's tables and saved as index.json, so any program of the
// same model finds the pieces that its ranks need.
#pragma once
#include <rankc/runtime/engine.hpp>
#include <rankc/trainer/parameters.hpp>
#include <rankc/trainer/tensor_source.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace rankc::runtime {

/// A region of the parameters, and the prefix of its tensors' names.
struct saved_region {
  region where;
  const char* prefix;
};
/// The regions that a program saves: weights, and the moments of its optimizer.
std::vector<saved_region> saved_regions(const description&);
/// True if a parameter has a region.
bool has(const global_parameter&, region);

/// An area of a tensor. `file` stores it as a tensor with the same name.
struct saved_piece {
  std::string file;
  area where;
};

struct saved_tensor {
  std::string name;
  region where;
  dtype type;
  std::vector<std::size_t> shape;
  std::vector<saved_piece> pieces;
};

/// The file of a rank: rank_00003.safetensors.
std::string file_of_rank(int rank);

/// The tensors of a program's checkpoints. The first replica saves a replicated piece.
/// Errors: failure (70) if the pieces do not hold every element exactly once.
std::vector<saved_tensor> saved_tensors(const description&, const std::vector<global_parameter>&);

/// index.json, with its own checksum. `vocabulary`: the tokens of the program.
std::string index_text(const std::vector<saved_tensor>&, std::size_t vocabulary);

struct saved_index {
  std::vector<saved_tensor> tensors;
  std::size_t vocabulary = 0;  // 0: written by an earlier version, which did not store it
};

/// Errors: failure (1) that names the file if it cannot be read or is damaged; failure (1) that names the
/// tensor if a value has another type or range, or pieces overlap or leave a hole.
saved_index read_index(const std::filesystem::path& file);

/// The shape of an area of a tensor with this many dims.
std::vector<std::size_t> shape_of(const area&, std::size_t dims);

}  // namespace rankc::runtime
