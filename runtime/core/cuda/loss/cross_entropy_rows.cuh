// SPDX-License-Identifier: Apache-2.0
// Reading of a row of logits by a block, and writing of its gradient. Each thread has four packs in flight
// before it uses the first.
#pragma once
#include "../device/device.cuh"

#include <cfloat>

namespace rankc::runtime::cuda {

/// The most threads of a block, the blocks resident together, and the packs that a thread loads at once.
inline constexpr int logits_threads = 256, logits_blocks = 4, logits_ahead = 4;

/// Calls f(column, pack) for the calling thread's packs of the row. f may overwrite them.
template <int N, class T, class F>
__device__ void walk_row(const T* row, int width, F&& f) {
  const int step = blockDim.x * N;
  for (int c = threadIdx.x * N; c < width; c += logits_ahead * step) {
    pack<T, N> in[logits_ahead];
#pragma unroll
    for (int k = 0; k < logits_ahead; ++k)
      if (c + k * step < width) in[k] = load<T, N>(row + c + k * step);
#pragma unroll
    for (int k = 0; k < logits_ahead; ++k)
      if (c + k * step < width) f(c + k * step, in[k]);
  }
}

/// The running maximum of logits and sum of exp(logit - maximum). A new maximum rescales the sum.
/// Source: Milakov and Gimelshein 2018.
template <class T>
struct online_sum {
  float top = -FLT_MAX / 2,
        sum = 0.0f;  // finite, also in powers of two, so that a logit of -infinity adds 0

  template <int N>
  __device__ void take(const pack<T, N>& in) {
    float value[N];
    unpack(value, in);
    float largest = value[0];
    for (int i = 1; i < N; ++i) largest = fmaxf(largest, value[i]);
    raise(fmaxf(largest, top));
    const exp_from<T> weight(top);
    for (int i = 0; i < N; ++i) sum += weight(value[i]);
  }
  __device__ void raise(float to) {
    if (to > top) sum *= exp_from<T>(to)(top);
    top = to;
  }
  /// Combines the values of all threads of the block, for each thread.
  __device__ void join_block() {
    raise(block_max(top));
    sum = block_sum(sum);
  }
  /// sums = (the sum, the target's logit - the maximum, or 0 if the target is not in the row). One thread
  /// calls it.
  __device__ void leave(float* sums, const T* logits, int target, int vocab) const {
    sums[0] = sum;
    sums[1] = target >= 0 && target < vocab ? to_float(logits[target]) - top : 0.0f;
  }
};

/// A row's dlogits = of_sum exp(logit - top) + of_target [column is the target]. dlogits may be logits.
template <int N, class T>
__device__ void walk_gradient(T* dlogits, const T* logits, int vocab, float top, float of_sum, int target,
                              float of_target) {
  const exp_from<T> weight(top);
  walk_row<N>(logits, vocab, [&](int c, const pack<T, N>& in) {
    float out[N];
    unpack(out, in);
    for (float& x : out) x = of_sum * weight(x);
    if (const int place = target - c; static_cast<unsigned>(place) < N) {  // one test for the whole pack
#pragma unroll
      for (int i = 0; i < N; ++i)
        if (i == place) out[i] += of_target;
    }
    store(dlogits + c, packed<T>(out));
  });
}

/// The threads for a row of `packs` packs, at most `limit`. It may be a few less than possible, to fill the
/// last round of loads best.
inline unsigned logits_block(int packs, int limit) {
  const int most = row_threads(packs, limit);
  const auto slots = [&](int threads) { return ceil_div(packs, threads * logits_ahead) * threads; };
  int best = most;
  for (int threads = most - warp_size; threads >= most * 3 / 4; threads -= warp_size)
    if (slots(threads) < slots(best)) best = threads;
  return static_cast<unsigned>(best);
}

/// Launches `kernel<N>` with one block for each token. N is the widest pack that the operands allow.
template <class T, int Threads = logits_threads, class Wide, class Single, class... Arguments>
void launch_rows(const lane& on, const char* name, Wide by_packs, Single by_elements, bool packs, int tokens,
                 int vocab, Arguments... arguments) {
  if (packs) launch(on, name, by_packs, tokens, logits_block(vocab / wide<T>, Threads), 0, arguments...);
  else launch(on, name, by_elements, tokens, logits_block(vocab, Threads), 0, arguments...);
}

}  // namespace rankc::runtime::cuda
