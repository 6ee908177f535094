// SPDX-License-Identifier: Apache-2.0
// Rows that a team reads before their turn. A thread copies its own packs of the team's next rows into shared
// memory while the team is at an earlier one, so that memory is busy while rows are summed up; what it copied
// it alone reads, so no barrier is needed. Rows too wide for that are read where they lie, each time anew.
#pragma once
#include "team.cuh"

#include <cuda_pipeline_primitives.h>

namespace rankc::runtime::cuda {

/// The same rows of `Operands` matrices (tokens, width), of which a thread has P packs of N elements each.
/// `Ahead` rows have room in shared memory; 0: none. A team's first row is `first`, and every step-th row is
/// its.
template <class T, int N, int P, int Operands, int Ahead>
class rows_ahead {
 public:
  struct matrices {
    const T* of[Operands];
  };
  /// Units: bytes of dynamic shared memory of a block of `threads`.
  static constexpr std::size_t bytes(int threads) {
    return sizeof(pack<T, N>) * Ahead * Operands * P * threads;
  }

  __device__ rows_ahead(const matrices& from, int first, int step, int tokens, int width)
      : from_(from), row_(first), step_(step), tokens_(tokens), width_(width) {
    for (int i = 0; i < Ahead; ++i) fetch(first + i * step, i);
  }

  /// Whether there is a row; if so, it has arrived.
  __device__ bool arrived() const {
    if (row_ >= tokens_) return false;
    if constexpr (Ahead > 0) __pipeline_wait_prior(Ahead - 1);
    return true;
  }
  __device__ int row() const { return row_; }
  __device__ int next() const { return row_ + step_; }

  /// The thread's pack number p of an operand's row.
  __device__ pack<T, N> get(int operand, int p) const {
    if constexpr (Ahead > 0) return *place(stage_, operand, p);
    else return load<T, N>(from_.of[operand] + std::size_t(row_) * width_ + team_column<N>(p));
  }

  /// The row has been read: go to the next.
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
