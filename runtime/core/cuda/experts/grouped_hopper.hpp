// SPDX-License-Identifier: Apache-2.0
// Grouped GEMMs in bf16 on the tensor cores of compute capability 9.0, as described in grouped.hpp.
#pragma once
#include <rankc/runtime/cuda/rank.hpp>

namespace rankc::runtime::cuda {

struct grouped_shape {
  int rows, in, out, segments, experts;
};

/// True if the lane's GPU has compute capability 9.0, sizes are multiples of 64 and addresses of 16 bytes.
bool hopper_takes(const lane&, const grouped_shape&, const void* result, const void* a, const void* b);

void hopper_linear(const lane&, bf16* y, const bf16* x, const bf16* w, const int* offsets,
                   const grouped_shape&);
/// y += x w[e]^T.
void hopper_linear_add(const lane&, bf16* y, const bf16* x, const bf16* w, const int* offsets,
                       const grouped_shape&);
void hopper_linear_two(const lane&, bf16* y, const bf16* x, const bf16* w, const bf16* x2, const bf16* w2,
                       const int* offsets, const grouped_shape&);
void hopper_linear_dx(const lane&, bf16* dx, const bf16* dy, const bf16* w, const int* offsets,
                      const grouped_shape&);
void hopper_linear_dw(const lane&, float* dw, const bf16* dy, const bf16* x, const int* offsets,
                      const grouped_shape&, bool accumulate);

}  // namespace rankc::runtime::cuda
