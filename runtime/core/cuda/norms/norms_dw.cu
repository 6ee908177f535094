// SPDX-License-Identifier: Apache-2.0
// The gradients of only the gains and shifts of LayerNorm and RMSNorm, as column sums. They are for a
// backward in two halves, whose other half computes dx.
// Source: Ba et al. 2016; Zhang and Sennrich 2019.
#include <rankc/runtime/cuda/kernels.hpp>

#include "../device/column_sums.cuh"
#include "norm_rows.cuh"

namespace rankc::runtime::cuda {
namespace {

/// dgain sums dy xhat, dshift sums dy.
template <bool Centred, class T>
struct gain_term {
  static constexpr int outputs = Centred ? 2 : 1, rows_at_once = 2;
  const T *dy, *x;
  const float* stats;
  int width;
  template <int N>
  struct operands {
    pack<T, N> dy, x;
    row_statistics of_row;
  };
  template <int N>
  __device__ operands<N> load_at(int n, int c) const {
    const std::size_t token = n;
    return {load<T, N>(dy + token * width + c), load<T, N>(x + token * width + c),
            load_statistics<Centred>(stats, token)};
  }
  template <int N>
  __device__ void add(float (&sum)[outputs][N], const operands<N>& in, int, int) const {
    float d[N], hat[N];
    unpack(d, in.dy);
    unpack(hat, in.x);
    for (int i = 0; i < N; ++i) {
      sum[0][i] += d[i] * (hat[i] - in.of_row.mean) * in.of_row.scale;
      if constexpr (Centred) sum[1][i] += d[i];
    }
  }
};

template <bool Centred, class T>
void run_dw(const lane& on, const char* name, const sum_targets<Centred ? 2 : 1>& to, at dy, at x, at stats,
            int tokens, int width, bool accumulate) {
  const T *d = on.at<T>(dy), *row = on.at<T>(x);
  column_sums<wide<T>>(on, name, to, gain_term<Centred, T>{d, row, on.at<float>(stats), width}, tokens, width,
                       packable<wide<T>>(width, d, row), accumulate);
}

}  // namespace

template <class T>
void layer_norm_dw(const lane& on, at dgain, at dshift, at dy, at x, at stats, int tokens, int width,
                   bool accumulate) {
  run_dw<true, T>(on, "layer_norm_dw", {{on.at<float>(dgain), on.at<float>(dshift)}}, dy, x, stats, tokens,
                  width, accumulate);
}

template <class T>
void rms_norm_dw(const lane& on, at dgain, at dy, at x, at stats, int tokens, int width, bool accumulate) {
  run_dw<false, T>(on, "rms_norm_dw", {{on.at<float>(dgain)}}, dy, x, stats, tokens, width, accumulate);
}

template void layer_norm_dw<float>(const lane&, at, at, at, at, at, int, int, bool);
template void layer_norm_dw<bf16>(const lane&, at, at, at, at, at, int, int, bool);
template void rms_norm_dw<float>(const lane&, at, at, at, at, int, int, bool);
template void rms_norm_dw<bf16>(const lane&, at, at, at, at, int, int, bool);

}  // namespace rankc::runtime::cuda
