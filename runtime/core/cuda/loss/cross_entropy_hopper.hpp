// SPDX-License-Identifier: Apache-2.0
// Cross entropy's sums and gradient on compute capability 9.0: rows of logits wait in shared memory between
// the two.
#pragma once
#include <rankc/runtime/cuda/rank.hpp>

namespace rankc::runtime::cuda {

/// Whether the lane's GPU can keep a row of so many bytes.
bool hopper_visits(const lane&, std::size_t row_bytes);

/// As softmax_sums_grad; rows are whole packs of 16 bytes, at multiples of 16.
template <class T>
void hopper_softmax_sums_grad(const lane&, T* dlogits, float* sums, const T* logits,
                              const std::int32_t* targets, int tokens, int vocab, float scale);

}  // namespace rankc::runtime::cuda
