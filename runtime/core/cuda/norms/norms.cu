// SPDX-License-Identifier: Apache-2.0
// LayerNorm and RMSNorm over the last dim, with or without the addition of a residual. Every element is read
// and written once, because a team of warps keeps its token's row in registers.
// Source: Ba et al. 2016; Zhang and Sennrich 2019.
#include <rankc/runtime/cuda/kernels.hpp>

#include "norm_rows.cuh"
#include "norms_narrow.hpp"

namespace rankc::runtime::cuda {
namespace {

/// The operands of a forward kernel. Those that the variant does not use are null.
template <class T>
struct forward_operands {
  T* y;
  float* stats;
  const T *x, *gain, *shift;
  T* sum;  // sum of x, residual and b: the norm's input if there is a residual
  const T *residual, *b;
};

enum class added { nothing, residual, residual_and_bias };

/// y = (x - mean) / std * gain + shift, or without `Centred` y = x / rms * gain.
/// Shapes: x, y, sum, residual (tokens, width); stats f32 (tokens, 2) mean and 1/std, or (tokens) 1/rms;
///         gain, shift, b (width); a team per token. y and sum may be x or residual.
template <bool Centred, added Added, int N, int P, class T>
__global__ void __launch_bounds__(most_norm_threads)
    norm_forward(forward_operands<T> o, int tokens, int width, float eps) {
  const std::size_t token = std::size_t{blockIdx.x} * blockDim.y + threadIdx.y;
  if (token >= tokens) return;
  const std::size_t begin = token * width;
  team mine;
  pack<T, N> row[P];
#pragma unroll
  for (int p = 0; p < P; ++p)
    if (const int c = team_column<N>(p); c < width) row[p] = load<T, N>(o.x + begin + c);
  if constexpr (Added != added::nothing) {
    pack<T, N> residual[P];
#pragma unroll
    for (int p = 0; p < P; ++p)
      if (const int c = team_column<N>(p); c < width) residual[p] = load<T, N>(o.residual + begin + c);
#pragma unroll
    for (int p = 0; p < P; ++p) {
      const int c = team_column<N>(p);
      if (c >= width) break;
      float value[N], other[N];
      unpack(value, row[p]);
      unpack(other, residual[p]);
      if constexpr (Added == added::residual_and_bias) {
        float b[N];
        unpack(b, load<T, N>(o.b + c));
        for (int i = 0; i < N; ++i) value[i] += b[i];
      }
      for (int i = 0; i < N; ++i) value[i] += other[i];
      row[p] = packed<T>(value);
      store(o.sum + begin + c, row[p]);
    }
  }

  const row_statistics of_row = statistics_of<Centred>(mine, row, width, eps);
#pragma unroll
  for (int p = 0; p < P; ++p) forget(row[p]);
  if (threadIdx.x == 0) store_statistics<Centred>(o.stats, token, of_row);
#pragma unroll
  for (int p = 0; p < P; ++p) {
    const int c = team_column<N>(p);
    if (c >= width) break;
    float value[N];
    unpack(value, row[p]);
    normalize<Centred>(value, of_row, o.gain, o.shift, c);
    store(o.y + begin + c, packed<T>(value));
  }
}

/// Uses packs of 16 bytes if all operands allow them, else single elements; f32 always uses single elements.
template <bool Centred, added Added, class T>
void run(const lane& on, const char* name, const forward_operands<T>& o, int tokens, int width, double eps) {
  check_width(on, name, width);
  with_norm_packs<T>(width, packable<8>(width, o.y, o.x, o.gain, o.shift, o.sum, o.residual, o.b),
                     [&]<int N, int P>() {
                       const dim3 block = team_block(ceil_div(width, N), P, norm_block);
                       launch(on, name, norm_forward<Centred, Added, N, P, T>, ceil_div(tokens, block.y),
                              block, 0, o, tokens, width, static_cast<float>(eps));
                     });
}

}  // namespace

template <class T>
void layer_norm(const lane& on, at y, at stats, at x, at gain, at shift, int tokens, int width, double eps) {
  run<true, added::nothing, T>(on, "layer_norm",
                               {.y = on.at<T>(y),
                                .stats = on.at<float>(stats),
                                .x = on.at<T>(x),
                                .gain = on.at<T>(gain),
                                .shift = on.at<T>(shift),
                                .sum = nullptr,
                                .residual = nullptr,
                                .b = nullptr},
                               tokens, width, eps);
}

template <class T>
void add_layer_norm(const lane& on, at sum, at y, at stats, at x, at residual, at gain, at shift, int tokens,
                    int width, double eps) {
  run<true, added::residual, T>(on, "add_layer_norm",
                                {.y = on.at<T>(y),
                                 .stats = on.at<float>(stats),
                                 .x = on.at<T>(x),
                                 .gain = on.at<T>(gain),
                                 .shift = on.at<T>(shift),
                                 .sum = on.at<T>(sum),
                                 .residual = on.at<T>(residual),
                                 .b = nullptr},
                                tokens, width, eps);
}

template <class T>
void bias_add_layer_norm(const lane& on, at sum, at y, at stats, at x, at b, at residual, at gain, at shift,
                         int tokens, int width, double eps) {
  run<true, added::residual_and_bias, T>(on, "bias_add_layer_norm",
                                         {.y = on.at<T>(y),
                                          .stats = on.at<float>(stats),
                                          .x = on.at<T>(x),
                                          .gain = on.at<T>(gain),
                                          .shift = on.at<T>(shift),
                                          .sum = on.at<T>(sum),
                                          .residual = on.at<T>(residual),
                                          .b = on.at<T>(b)},
                                         tokens, width, eps);
}

template <class T>
void rms_norm(const lane& on, at y, at stats, at x, at gain, int tokens, int width, double eps) {
  if constexpr (std::is_same_v<T, bf16>)
    if (is_narrow(width) && packable<8>(width, on.at<T>(y), on.at<T>(x), on.at<T>(gain)))
      return narrow_rms_norm(on, on.at<T>(y), on.at<float>(stats), on.at<T>(x), on.at<T>(gain), tokens, width,
                             static_cast<float>(eps));
  run<false, added::nothing, T>(on, "rms_norm",
                                {.y = on.at<T>(y),
                                 .stats = on.at<float>(stats),
                                 .x = on.at<T>(x),
                                 .gain = on.at<T>(gain),
                                 .shift = nullptr,
                                 .sum = nullptr,
                                 .residual = nullptr,
                                 .b = nullptr},
                                tokens, width, eps);
}

template <class T>
void add_rms_norm(const lane& on, at sum, at y, at stats, at x, at residual, at gain, int tokens, int width,
                  double eps) {
  run<false, added::residual, T>(on, "add_rms_norm",
                                 {.y = on.at<T>(y),
                                  .stats = on.at<float>(stats),
                                  .x = on.at<T>(x),
                                  .gain = on.at<T>(gain),
                                  .shift = nullptr,
                                  .sum = on.at<T>(sum),
                                  .residual = on.at<T>(residual),
                                  .b = nullptr},
                                 tokens, width, eps);
}

template void layer_norm<float>(const lane&, at, at, at, at, at, int, int, double);
template void layer_norm<bf16>(const lane&, at, at, at, at, at, int, int, double);
template void add_layer_norm<float>(const lane&, at, at, at, at, at, at, at, int, int, double);
template void add_layer_norm<bf16>(const lane&, at, at, at, at, at, at, at, int, int, double);
template void bias_add_layer_norm<float>(const lane&, at, at, at, at, at, at, at, at, int, int, double);
template void bias_add_layer_norm<bf16>(const lane&, at, at, at, at, at, at, at, at, int, int, double);
template void rms_norm<float>(const lane&, at, at, at, at, int, int, double);
template void rms_norm<bf16>(const lane&, at, at, at, at, int, int, double);
template void add_rms_norm<float>(const lane&, at, at, at, at, at, at, int, int, double);
template void add_rms_norm<bf16>(const lane&, at, at, at, at, at, at, int, int, double);

}  // namespace rankc::runtime::cuda
