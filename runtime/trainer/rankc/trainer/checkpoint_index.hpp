// SPDX-License-Identifier: Apache-2.0
// What a checkpoint consists of: each region of each parameter is a tensor, in pieces that ranks keep in
// files of their own. Known from a program's tables alone, and written beside the pieces (index.json), so
// that any other program of the same model finds what its ranks need.
#pragma once
#include <rankc/runtime/engine.hpp>
#include <rankc/trainer/parameters.hpp>
#include <rankc/trainer/tensor_source.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace rankc::runtime {

/// A region of parameters, and what its tensors' names begin with.
struct part {
  region where;
  const char* prefix;
};
/// The regions that a program saves: weights, and the moments that its optimizer keeps.
std::vector<part> saved_parts(const description&);
/// Of these, the parameters that have the region.
bool has(const global_parameter&, region);

/// An area of a tensor, which `file` has whole, under the tensor's name.
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

/// The tensors of a program's checkpoints; of replicas the first keeps a piece.
/// Errors: failure (70) where the pieces do not hold every element exactly once.
std::vector<saved_tensor> saved_tensors(const description&, const std::vector<global_parameter>&);

/// index.json, with a checksum of itself.
std::string index_text(const std::vector<saved_tensor>&);

/// Errors: failure (1) for what cannot be read, is damaged, or has tensors whose pieces overlap or leave a
/// hole.
std::vector<saved_tensor> read_index(const std::filesystem::path& file);

/// A part of a tensor that has one column where it is a vector.
std::vector<std::size_t> shape_of(const area&, std::size_t dims);

}  // namespace rankc::runtime
