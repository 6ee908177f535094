// SPDX-License-Identifier: Apache-2.0
// What the copy engine of compute capability 9.0 is told of a matrix in device memory.
#pragma once
#include <rankc/runtime/cuda/rank.hpp>

#include <cuda.h>

namespace rankc::runtime::cuda {

/// Boxes are square. A row of one is 128 bytes, whose 16-byte pieces change places with the row (swizzle).
inline constexpr int box_side = 64, box_bytes = box_side * box_side * static_cast<int>(sizeof(bf16));

/// Whether the lane's GPU is one.
bool is_hopper(const lane&);

/// A row-major matrix, copied in boxes; what lies outside the matrix is 0 in them.
/// Shapes: `matrix` (rows, columns), at a multiple of 16 bytes; columns a multiple of 8. Units: `stride` in
/// elements from
///         one row to the next, a multiple of 8. Errors: failure (70).
CUtensorMap tensor_map(const lane&, const bf16* matrix, std::size_t rows, int columns, int stride);
inline CUtensorMap tensor_map(const lane& on, const bf16* matrix, std::size_t rows, int columns) {
  return tensor_map(on, matrix, rows, columns, columns);
}

}  // namespace rankc::runtime::cuda
