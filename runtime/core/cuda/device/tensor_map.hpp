// SPDX-License-Identifier: Apache-2.0
// Tensor maps: the description of a matrix in device memory for the copy engine of compute capability 9.0.
#pragma once
#include <rankc/runtime/cuda/rank.hpp>

#include <cuda.h>

namespace rankc::runtime::cuda {

/// Boxes are square. A row of a box is 128 bytes, and the order of its 16-byte pieces depends on the row
/// (swizzle).
inline constexpr int box_side = 64, box_bytes = box_side * box_side * static_cast<int>(sizeof(bf16));

/// True if the lane's GPU has compute capability 9.0.
bool is_hopper(const lane&);

/// A map of a row-major matrix for copies of boxes. Elements of a box outside the matrix are 0.
/// Shapes: `matrix` (rows, columns), at a multiple of 16 bytes; columns a multiple of 8.
/// Units: `stride` in elements from one row to the next, a multiple of 8.
/// Errors: failure (70).
CUtensorMap tensor_map(const lane&, const bf16* matrix, std::size_t rows, int columns, int stride);
inline CUtensorMap tensor_map(const lane& on, const bf16* matrix, std::size_t rows, int columns) {
  return tensor_map(on, matrix, rows, columns, columns);
}

}  // namespace rankc::runtime::cuda
