// SPDX-License-Identifier: Apache-2.0
// The tensors of a checkpoint. Each region of each parameter is a tensor, and its pieces lie in the files of
// the ranks. The index follows from a program's tables. It is written next to the pieces (index.json), so any
// program of the same model finds the pieces that its ranks need.
#pragma once
#include <rankc/runtime/engine.hpp>
#include <rankc/trainer/parameters.hpp>
#include <rankc/trainer/tensor_source.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace rankc::runtime {

/// A region of parameters, and the prefix of its tensors' names.
struct part {
  region where;
  const char* prefix;
};
/// The regions that a program saves: weights, and the moments that its optimizer keeps.
std::vector<part> saved_parts(const description&);
/// Whether a parameter has a region.
bool has(const global_parameter&, region);

/// An area of a tensor. `file` has it as a tensor with the same name.
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

/// The tensors of a program's checkpoints. Of replicas, the first one saves.
/// Errors: failure (70) where the pieces do not hold every element exactly once.
std::vector<saved_tensor> saved_tensors(const description&, const std::vector<global_parameter>&);

/// index.json, with a checksum of itself. `vocabulary`: the tokens of the program.
std::string index_text(const std::vector<saved_tensor>&, std::size_t vocabulary);

struct saved_index {
  std::vector<saved_tensor> tensors;
  std::size_t vocabulary = 0;  // 0: an earlier version, which did not write it
};

/// Errors: failure (1) that names the file, where it cannot be read or is damaged; the tensor, where a value
/// has another type or range, or pieces overlap or leave a hole.
saved_index read_index(const std::filesystem::path& file);

/// The shape of an area of a tensor with this many dims.
std::vector<std::size_t> shape_of(const area&, std::size_t dims);

}  // namespace rankc::runtime
