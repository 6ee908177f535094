// SPDX-License-Identifier: Apache-2.0
// Cross entropy's sums and gradient on compute capability 9.0. Rows of logits stay in shared memory between
// the two.
#pragma once
#include <rankc/runtime/cuda/rank.hpp>

namespace rankc::runtime::cuda {

/// The factor of a token's loss. With a count of labels, negative targets have the factor 0, and the others
/// the scale divided by the count, times the token's weight if there are weights.
struct loss_factor {
  float scale;
  const float *count = nullptr, *weights = nullptr;  // on the device

#ifdef __CUDACC__
  __device__ float operator()(int target, std::size_t token) const {
    if (count == nullptr) return scale;
    if (target < 0) return 0.0f;
    if (weights == nullptr) return scale / *count;
    const float weight = weights[token];
    return weight > 0.0f ? weight * (scale / *count) : 0.0f;
  }
#endif
};

/// True if the lane's GPU can keep a row of `row_bytes` in shared memory.
bool hopper_visits(const lane&, std::size_t row_bytes);

/// Computes softmax_sums_grad. Rows are whole packs of 16 bytes, at multiples of 16.
template <class T>
void hopper_softmax_sums_grad(const lane&, T* dlogits, float* sums, const T* logits,
                              const std::int32_t* targets, int tokens, int vocab, loss_factor);

}  // namespace rankc::runtime::cuda
