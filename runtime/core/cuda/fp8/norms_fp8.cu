// SPDX-License-Identifier: Apache-2.0
// Norms with fp8 results. They read x once for the statistics and the largest number, and once more for the
// numbers. These are rounded to T first, so the bits are those of the norm's own kernel. With a scale for
// each row and column, x is read a third time for those.
#include <rankc/runtime/cuda/fused.hpp>

#include "fp8_rows.cuh"
#include "../norms/norm_rows.cuh"

namespace rankc::runtime::cuda {
namespace {

template <class T>
struct norm_operands {
  const T *x, *gain, *shift;  // shift: null for RMSNorm
  float* stats;
};

/// The statistics of rows, which teams take in turn, and, if asked for, the absolute maximum of the norm's
/// results in a block.
/// Shapes: maxima (blocks), or null; the others as in norms.cu.
template <bool Centred, int N, int P, class T>
__global__ void __launch_bounds__(most_norm_threads)
    norm_maxima(float* maxima, norm_operands<T> o, int tokens, int width, float eps) {
  team mine;
  float most = 0.0f;
  for (std::size_t token = std::size_t{blockIdx.x} * blockDim.y + threadIdx.y; token < tokens;
       token += std::size_t{gridDim.x} * blockDim.y) {
    pack<T, N> row[P];
#pragma unroll
    for (int p = 0; p < P; ++p)
      if (const int c = team_column<N>(p); c < width) row[p] = load<T, N>(o.x + token * width + c);
    const row_statistics of_row = statistics_of<Centred>(mine, row, width, eps);
    if (threadIdx.x == 0) store_statistics<Centred>(o.stats, token, of_row);
    if (maxima == nullptr) continue;
#pragma unroll
    for (int p = 0; p < P; ++p) {
      const int c = team_column<N>(p);
      if (c >= width) break;
      float value[N];
      unpack(value, row[p]);
      normalize<Centred>(value, of_row, o.gain, o.shift, c);
      for (int i = 0; i < N; ++i) most = fmaxf(most, fabsf(to_float(from_float<T>(value[i]))));
    }
  }
  if (maxima == nullptr) return;
  __shared__ float of_warp[most_norm_threads / warp_size];
  const int thread = threadIdx.y * blockDim.x + threadIdx.x, warps = blockDim.x * blockDim.y / warp_size;
  most = warp_max(most);
  if (thread % warp_size == 0) of_warp[thread / warp_size] = most;
  __syncthreads();
  if (thread != 0) return;
  for (int w = 1; w < warps; ++w) most = fmaxf(most, of_warp[w]);
  maxima[blockIdx.x] = most;
}

/// The results of the norm, from the stored statistics. Gains and shifts may have any alignment.
template <bool Centred, class T>
struct norm_numbers {
  static constexpr int results = 1;
  norm_operands<T> o;
  int width;
  bool packs;
  __device__ void operator()(float (&to)[1][fp8_each], int row, int column) const {
    const row_statistics of_row = load_statistics<Centred>(o.stats, row);
    unpack(to[0], load<T, fp8_each>(o.x + std::size_t(row) * width + column));
    if (packs) normalize<Centred>(to[0], of_row, o.gain, o.shift, column);
    else
      for (int i = 0; i < fp8_each; ++i) {
        float one[1] = {to[0][i]};
        normalize<Centred>(one, of_row, o.gain, o.shift, column + i);
        to[0][i] = one[0];
      }
    for (float& y : to[0]) y = to_float(from_float<T>(y));
  }
};

/// Computes the statistics, and `parts` maxima if `maxima` is not null.
template <bool Centred, class T>
int measure(const lane& on, const char* name, float* maxima, const norm_operands<T>& o, int tokens, int width,
            double eps, bool packs) {
  check_width(on, name, width);
  int parts = 0;
  with_norm_packs<T>(width, packs, [&]<int N, int P>() {
    const dim3 block = team_block(ceil_div(width, N), P, norm_block);
    parts = static_cast<int>(std::min<std::size_t>(fp8_parts, ceil_div(tokens, block.y)));
    launch(on, name, norm_maxima<Centred, N, P, T>, parts, block, 0, maxima, o, tokens, width,
           static_cast<float>(eps));
  });
  return parts;
}

template <bool Centred, class T>
void run(const lane& on, const char* name, at y, const norm_operands<T>& o, int tokens, int width,
         double eps) {
  const fp8_places q(on, y, tokens, width);
  const bool packs = packable<8>(width, o.x, o.gain, o.shift);
  const int parts = measure<Centred>(on, name, q.maxima, o, tokens, width, eps, packs);
  round_by_maxima<runtime::e4m3>(on, name, q, norm_numbers<Centred, T>{o, width, packs}, parts, tokens,
                                 width);
}
template <bool Centred, class T>
void run_rows(const lane& on, const char* name, at y, const norm_operands<T>& o, int tokens, int width,
              double eps) {
  const bool packs = packable<8>(width, o.x, o.gain, o.shift);
  measure<Centred>(on, name, nullptr, o, tokens, width, eps, packs);
  round_to_rows(on, name, y, norm_numbers<Centred, T>{o, width, packs}, tokens, width);
}

}  // namespace

template <class T>
void layer_norm_e4m3(const lane& on, at y, at stats, at x, at gain, at shift, int tokens, int width,
                     double eps) {
  run<true, T>(on, "layer_norm_e4m3", y, {on.at<T>(x), on.at<T>(gain), on.at<T>(shift), on.at<float>(stats)},
               tokens, width, eps);
}
template <class T>
void rms_norm_e4m3(const lane& on, at y, at stats, at x, at gain, int tokens, int width, double eps) {
  run<false, T>(on, "rms_norm_e4m3", y, {on.at<T>(x), on.at<T>(gain), nullptr, on.at<float>(stats)}, tokens,
                width, eps);
}
template <class T>
void layer_norm_e4m3_rows(const lane& on, at y, at stats, at x, at gain, at shift, int tokens, int width,
                          double eps) {
  run_rows<true, T>(on, "layer_norm_e4m3_rows", y,
                    {on.at<T>(x), on.at<T>(gain), on.at<T>(shift), on.at<float>(stats)}, tokens, width, eps);
}
template <class T>
void rms_norm_e4m3_rows(const lane& on, at y, at stats, at x, at gain, int tokens, int width, double eps) {
  run_rows<false, T>(on, "rms_norm_e4m3_rows", y, {on.at<T>(x), on.at<T>(gain), nullptr, on.at<float>(stats)},
                     tokens, width, eps);
}

template decltype(layer_norm_e4m3<float>) layer_norm_e4m3<float>;
template decltype(layer_norm_e4m3<bf16>) layer_norm_e4m3<bf16>;
template decltype(rms_norm_e4m3<float>) rms_norm_e4m3<float>;
template decltype(rms_norm_e4m3<bf16>) rms_norm_e4m3<bf16>;
template decltype(layer_norm_e4m3_rows<float>) layer_norm_e4m3_rows<float>;
template decltype(layer_norm_e4m3_rows<bf16>) layer_norm_e4m3_rows<bf16>;
template decltype(rms_norm_e4m3_rows<float>) rms_norm_e4m3_rows<float>;
template decltype(rms_norm_e4m3_rows<bf16>) rms_norm_e4m3_rows<bf16>;

}  // namespace rankc::runtime::cuda
