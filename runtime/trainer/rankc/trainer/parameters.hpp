// SPDX-License-Identifier: Apache-2.0
// The parameters of a program as whole tensors: the place of each rank's shards, and writes and reads through
// them. Initialisation and checkpoints see only whole tensors, so neither depends on the parallel layout.
#pragma once
#include <rankc/runtime/engine.hpp>
#include <rankc/trainer/tensor_source.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace rankc::runtime {

/// One rank's part of a tensor: rows [row, row + rows) and columns [column, column + columns), stored
/// row-major from `element` on in each region of that rank.
struct shard {
  int rank;
  std::size_t element;
  std::size_t row, rows, column, columns;
};

/// The area of the tensor that a shard holds.
inline area area_of(const shard& s) { return {s.row, s.rows, s.column, s.columns}; }

/// Shapes: rows x columns of the whole tensor, row-major; a vector has one column.
struct global_parameter {
  std::string name;
  std::size_t rows, columns;
  bool matrix;
  fill init;
  double std;
  bool trained;                // false: the parameter has weights and no other region
  std::vector<shard> holders;  // every rank that holds a part, replicas included
  std::vector<shard> sources;  // each element once: the first replica
  std::size_t count() const { return rows * columns; }
  std::vector<std::size_t> shape() const { return matrix ? std::vector{rows, columns} : std::vector{rows}; }
};

/// All parameters of a program in the order of its pipeline ranks; a tied weight is listed once.
/// Errors: failure (70) for tables that contradict each other.
std::vector<global_parameter> global_parameters(const description&);

/// The parameter with a name; null if there is none.
const global_parameter* find_parameter(const std::vector<global_parameter>&, const std::string& name);

/// The suffixes of a weight's LoRA adapters, and whether a parameter is an adapter.
inline constexpr const char *lora_a = ".lora_a", *lora_b = ".lora_b";
bool is_beside(const global_parameter&, const std::vector<global_parameter>& all);

/// Receives or gives elements [first, first + values.size()) of a tensor in row-major order.
using give_values = std::function<void(std::size_t first, std::span<double> values)>;
using take_values = std::function<void(std::size_t first, std::span<const double> values)>;

/// Writes a whole tensor to every rank that holds a part of it, or reads it, in blocks of rows in order.
void write(engine&, const global_parameter&, region, const give_values&);
void read(engine&, const global_parameter&, region, const take_values&);

/// Writes the parts of a tensor that this process's ranks hold, from a tensor of a source. Reads only these
/// parts.
void write(engine&, const global_parameter&, region, const tensor_source&, const std::string& tensor);

/// Initialises some parameters, or all of a model, by their descriptions and the hash of `seed`.
void initialise(engine&, const std::vector<global_parameter>&, std::uint64_t seed);
void initialise(engine&, std::uint64_t seed);

}  // namespace rankc::runtime
