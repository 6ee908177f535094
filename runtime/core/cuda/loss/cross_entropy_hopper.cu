// SPDX-License-Identifier: Apache-2.0
// Cross entropy's sums and gradient in one kernel that reads the logits once. The copy engine copies a row
// into shared memory, where it stays until its sum is known. A multiprocessor has room for two rows, so one
// is loaded while another is written.
#include "cross_entropy_hopper.hpp"

#include <rankc/contract/held_logits.hpp>

#include "cross_entropy_rows.cuh"
#include "../device/hopper.cuh"
#include "../device/tensor_map.hpp"

namespace rankc::runtime::cuda {
namespace {

using namespace hopper;

constexpr int threads = 512, blocks = 2;
constexpr int chunk_bytes = 16 * 1024, chunks = held_logits / chunk_bytes;

/// Loads a row in chunks, each with its barrier. One thread calls it.
__device__ void fetch(void* to, const void* from, int bytes, std::uint64_t* arrived) {
  for (int i = 0; i < chunks; ++i) make_barrier(address_of(arrived + i), 1);
  publish_barriers();
  for (int at = 0, i = 0; at < bytes; at += chunk_bytes, ++i) {
    const int size = min(chunk_bytes, bytes - at);
    arrive_expecting(address_of(arrived + i), size);
    copy_line(address_of(to) + at, static_cast<const char*>(from) + at, size, address_of(arrived + i));
  }
}

/// sums[n] and row n of dlogits, one block for each token.
/// Shapes: as softmax_sums_grad.
template <class T>
__global__ void __launch_bounds__(threads, blocks)
    visit(T* dlogits, float* sums, const T* logits, const std::int32_t* targets, int vocab,
          loss_factor factor) {
  constexpr int of_chunk = chunk_bytes / static_cast<int>(sizeof(T));
  __shared__ std::uint64_t arrived[chunks];
  const std::size_t token = blockIdx.x;
  const int target = targets[token];
  T* row = reinterpret_cast<T*>(dynamic_shared());
  if (threadIdx.x == 0) fetch(row, logits + token * vocab, vocab * static_cast<int>(sizeof(T)), arrived);
  __syncthreads();

  online_sum<T> all;
  for (int begin = 0, i = 0; begin < vocab; begin += of_chunk, ++i) {
    wait(address_of(arrived + i), 0);
    const int end = min(begin + of_chunk, vocab);
    for (int c = begin + threadIdx.x * wide<T>; c < end; c += threads * wide<T>)
      all.take(load<T, wide<T>>(row + c));
  }
  all.join_block();
  if (threadIdx.x == 0) all.leave(sums + 2 * token, row, target, vocab);
  const float scale = factor(target, token);
  walk_gradient<wide<T>>(dlogits + token * vocab, row, vocab, all.top, scale / all.sum, target, -scale);
}

}  // namespace

bool hopper_visits(const lane& on, std::size_t row_bytes) {
  return row_bytes <= held_logits && is_hopper(on);
}

template <class T>
void hopper_softmax_sums_grad(const lane& on, T* dlogits, float* sums, const T* logits,
                              const std::int32_t* targets, int tokens, int vocab, loss_factor factor) {
  launch(on, "softmax_sums_grad", visit<T>, tokens, threads, vocab * sizeof(T), dlogits, sums, logits,
         targets, vocab, factor);
}

template void hopper_softmax_sums_grad<float>(const lane&, float*, float*, const float*, const std::int32_t*,
                                              int, int, loss_factor);
template void hopper_softmax_sums_grad<bf16>(const lane&, bf16*, float*, const bf16*, const std::int32_t*,
                                             int, int, loss_factor);

}  // namespace rankc::runtime::cuda
