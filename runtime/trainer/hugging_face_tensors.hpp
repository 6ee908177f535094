// SPDX-License-Identifier: Apache-2.0
// The tensors of Hugging Face files, computed from the plan's parameters. They are joined, transposed, and
// extended by rows of the folder that the run began with.
#pragma once
#include "hugging_face_config.hpp"
#include "hugging_face_origin.hpp"
#include <rankc/trainer/parameters.hpp>
#include <rankc/trainer/safetensors.hpp>
#include <rankc/trainer/tensor_source.hpp>

#include <vector>

namespace rankc::runtime {

/// Rows of a parameter.
struct rows_of_parameter {
  const global_parameter* of;
  std::size_t first, count;
};

/// A tensor of the files, and the parameter rows that it is made of.
struct joined {
  safetensors_writer::tensor as;
  bool transposed;
  std::vector<rows_of_parameter> parts;
  std::size_t copied_rows;  // rows after these, copied from the origin
  std::size_t rows() const;
};

/// The type of the tensors in the files.
dtype type_of_files(const description&);

/// The sizes of the files: those of the origin, or the plan's if there is no origin.
free_sizes sizes_of(const description&, const hugging_face_origin*);

/// The tensors that are made of these parameters.
/// Errors: failure (1) for a parameter that the model has no Hugging Face name for.
std::vector<joined> join_parameters(const description&, const hugging_face_model&,
                                    const std::vector<global_parameter>&, const free_sizes&);

/// Appends the values of a tensor to a file. `origin` may be null if no rows are copied.
void append(safetensors_writer&, const joined&, const tensor_source&, hugging_face_origin* origin);

}  // namespace rankc::runtime
