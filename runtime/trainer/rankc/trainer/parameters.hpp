// SPDX-License-Identifier: Apache-2.0
// The parameters of a program as whole tensors: where each rank's shard of them lies, and how values go in
// and out. Initialisation and checkpoints see only whole tensors, so neither depends on the parallel layout.
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

/// What it is of the tensor.
inline area area_of(const shard& s) { return {s.row, s.rows, s.column, s.columns}; }

/// Shapes: rows x columns of the whole tensor, row-major; a vector has one column.
struct global_parameter {
  std::string name;
  std::size_t rows, columns;
  bool matrix;
  fill init;
  double std;
  bool trained;                // else there are its weights and no other region of it
  std::vector<shard> holders;  // every rank that holds a part, copies included
  std::vector<shard> sources;  // each element once: the first replica, no copies
  std::size_t count() const { return rows * columns; }
  std::vector<std::size_t> shape() const { return matrix ? std::vector{rows, columns} : std::vector{rows}; }
};

/// All parameters of a program in the order of its pipeline ranks; a tied weight is there once.
/// Errors: failure (70) for tables that contradict each other.
std::vector<global_parameter> global_parameters(const description&);

/// The parameter of a name; null where there is none.
const global_parameter* find_parameter(const std::vector<global_parameter>&, const std::string& name);

/// What a part of low rank is called behind the weight that it is beside, and whether a parameter is one.
inline constexpr const char *lora_a = ".lora_a", *lora_b = ".lora_b";
bool is_beside(const global_parameter&, const std::vector<global_parameter>& all);

/// Receives or gives elements [first, first + values.size()) of a tensor in row-major order.
using give_values = std::function<void(std::size_t first, std::span<double> values)>;
using take_values = std::function<void(std::size_t first, std::span<const double> values)>;

/// Write a whole tensor to every rank that holds a part of it, or read it; in blocks of rows, in order.
void write(engine&, const global_parameter&, region, const give_values&);
void read(engine&, const global_parameter&, region, const take_values&);

/// Write what this process's ranks hold of a tensor, from one of a source, reading no more than that.
void write(engine&, const global_parameter&, region, const tensor_source&, const std::string& tensor);

/// Start parameters, or all of a model: weights as their descriptions say, by the hash of `seed`.
void initialise(engine&, const std::vector<global_parameter>&, std::uint64_t seed);
void initialise(engine&, std::uint64_t seed);

}  // namespace rankc::runtime
