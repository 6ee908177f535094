// SPDX-License-Identifier: Apache-2.0
// Prefetch of rows. A thread copies its packs of the team's next rows into shared memory while the team
// processes an earlier row, so memory stays busy during sums. A thread reads only its own copies, so no
// barrier is needed. Rows that are too wide are read from device memory each time.
#pragma once
#include "team.cuh"

#include <cuda_pipeline_primitives.h>

namespace rankc::runtime::cuda {

/// The same rows of `Operands` matrices (tokens, width). A thread has P packs of N elements of each row.
/// `Ahead` rows fit into shared memory; 0: none. A team processes every step-th row, from `first` on.
template <class T, int N, int P, int Operands, int Ahead>
class rows_ahead {
 public:
  struct matrices {
    const T* of[Operands];
  };
  /// The dynamic shared memory of a block of `threads`.
  /// Units: bytes.
  static constexpr std::size_t bytes(int threads) {
    return sizeof(pack<T, N>) * Ahead * Operands * P * threads;
  }

  __device__ rows_ahead(const matrices& from, int first, int step, int tokens, int width)
      : from_(from), row_(first), step_(step), tokens_(tokens), width_(width) {
    for (int i = 0; i < Ahead; ++i) fetch(first + i * step, i);
  }

  /// True if there is a row; its copy has then arrived.
  __device__ bool arrived() const {
    if (row_ >= tokens_) return false;
    if constexpr (Ahead > 0) __pipeline_wait_prior(Ahead - 1);
    return true;
  }
  __device__ int row() const { return row_; }
  __device__ int next() const { return row_ + step_; }

  /// Pack number p of the thread in an operand's row.
  __device__ pack<T, N> get(int operand, int p) const {
    if constexpr (Ahead > 0) return *place(stage_, operand, p);
    else return load<T, N>(from_.of[operand] + std::size_t(row_) * width_ + team_column<N>(p));
  }

  /// Goes to the next row, after this one has been read.
  __device__ void advance() {
    if constexpr (Ahead > 0) {
      fetch(row_ + Ahead * step_, stage_);
      stage_ = stage_ + 1 == Ahead ? 0 : stage_ + 1;
    }
    row_ = next();
  }

 private:
  __device__ pack<T, N>* place(int stage, int operand, int p) const {
    const int threads = blockDim.x * blockDim.y, thread = threadIdx.y * blockDim.x + threadIdx.x;
    return reinterpret_cast<pack<T, N>*>(dynamic_shared()) +
           ((stage * Operands + operand) * P + p) * threads + thread;
  }
  __device__ void fetch(int row, int stage) {
    if (row < tokens_) {
#pragma unroll
      for (int p = 0; p < P; ++p) {
        const int c = team_column<N>(p);
        if (c >= width_) break;
        for (int k = 0; k < Operands; ++k)
          __pipeline_memcpy_async(place(stage, k, p), from_.of[k] + std::size_t(row) * width_ + c,
                                  sizeof(pack<T, N>));
      }
    }
    __pipeline_commit();
  }

  matrices from_;
  int row_, step_, tokens_, width_, stage_ = 0;
};

}  // namespace rankc::runtime::cuda
