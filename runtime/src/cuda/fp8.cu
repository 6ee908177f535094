// SPDX-License-Identifier: Apache-2.0
// Tensors of eight bits, of what is in memory, or of what an activation makes of it. That is rounded to T first, so that its
// bits are those of the activation's own kernel.
#include <rankc/runtime/cuda/kernels.hpp>

#include "activations.cuh"
#include "fp8_tiles.cuh"

namespace rankc::cuda {
namespace {

template <class T>
__device__ float through(float x) {
  return to_float(from_float<T>(x));
}

template <class T>
struct numbers {
  static constexpr int results = 1;
  const T* x;
  int width;
  __device__ void operator()(float (&to)[1][fp8_each], int row, int column) const {
    unpack(to[0], load<T, fp8_each>(x + std::size_t(row) * width + column));
  }
};

template <class T>
struct gelu_numbers {
  static constexpr int results = 1;
  const T* x;
  int width;
  __device__ void operator()(float (&to)[1][fp8_each], int row, int column) const {
    unpack(to[0], load<T, fp8_each>(x + std::size_t(row) * width + column));
    for (float& y : to[0]) y = through<T>(gelu_of<T>{}(y));
  }
};

template <class T>
struct swiglu_numbers {
  static constexpr int results = 1;
  const T *gate, *up;
  int stride;
  __device__ void operator()(float (&to)[1][fp8_each], int row, int column) const {
    const std::size_t at = std::size_t(row) * stride + column;
    float u[fp8_each];
    unpack(to[0], load<T, fp8_each>(gate + at));
    unpack(u, load<T, fp8_each>(up + at));
    for (int i = 0; i < fp8_each; ++i) to[0][i] = through<T>(swiglu_of<T>(to[0][i], u[i]));
  }
};

template <class T>
struct swiglu_gradients {
  static constexpr int results = 2;
  const T *dy, *gate, *up;
  int width, stride;
  __device__ void operator()(float (&to)[2][fp8_each], int row, int column) const {
    const std::size_t at = std::size_t(row) * stride + column;
    float d[fp8_each];
    unpack(d, load<T, fp8_each>(dy + std::size_t(row) * width + column));
    unpack(to[0], load<T, fp8_each>(gate + at));
    unpack(to[1], load<T, fp8_each>(up + at));
    for (int i = 0; i < fp8_each; ++i) {
      take_swiglu_grad<T>(d[i], to[0][i], to[1][i]);
      to[0][i] = through<T>(to[0][i]), to[1][i] = through<T>(to[1][i]);
    }
  }
};

}  // namespace

template <class T>
void to_e4m3(const lane& on, at q, at x, int rows, int columns) {
  round_to_fp8<runtime::e4m3>(on, "to_e4m3", q, numbers<T>{on.at<T>(x), columns}, rows, columns);
}
template <class T>
void to_e5m2(const lane& on, at q, at x, int rows, int columns) {
  round_to_fp8<runtime::e5m2>(on, "to_e5m2", q, numbers<T>{on.at<T>(x), columns}, rows, columns);
}
template <class T>
void gelu_e4m3(const lane& on, at y, at x, int tokens, int width) {
  round_to_fp8<runtime::e4m3>(on, "gelu_e4m3", y, gelu_numbers<T>{on.at<T>(x), width}, tokens, width);
}
template <class T>
void swiglu_e4m3(const lane& on, at y, at gate, at up, int tokens, int width, int stride) {
  round_to_fp8<runtime::e4m3>(on, "swiglu_e4m3", y, swiglu_numbers<T>{on.at<T>(gate), on.at<T>(up), stride}, tokens, width);
}
template <class T>
void swiglu_grad_e5m2(const lane& on, at dgate, at dup, at dy, at gate, at up, int tokens, int width, int stride) {
  if (dup.byte != dgate.byte + width || stride != 2 * width) fail(on, "swiglu_grad_e5m2: dgate and dup are not all columns of one tensor");
  round_to_fp8<runtime::e5m2>(on, "swiglu_grad_e5m2", dgate,
                              swiglu_gradients<T>{on.at<T>(dy), on.at<T>(gate), on.at<T>(up), width, stride}, tokens, width);
}

template void to_e4m3<float>(const lane&, at, at, int, int);
template void to_e4m3<bf16>(const lane&, at, at, int, int);
template void to_e5m2<float>(const lane&, at, at, int, int);
template void to_e5m2<bf16>(const lane&, at, at, int, int);
template void gelu_e4m3<float>(const lane&, at, at, int, int);
template void gelu_e4m3<bf16>(const lane&, at, at, int, int);
template void swiglu_e4m3<float>(const lane&, at, at, at, int, int, int);
template void swiglu_e4m3<bf16>(const lane&, at, at, at, int, int, int);
template void swiglu_grad_e5m2<float>(const lane&, at, at, at, at, at, int, int, int);
template void swiglu_grad_e5m2<bf16>(const lane&, at, at, at, at, at, int, int, int);

}  // namespace rankc::cuda
