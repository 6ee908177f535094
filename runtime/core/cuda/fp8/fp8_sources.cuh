// SPDX-License-Identifier: Apache-2.0
// The sources of numbers that are rounded to fp8: memory, or an activation. An activation is rounded to T
// first, so its bits are those of the activation's own kernel.
#pragma once
#include "../elementwise/activations.cuh"
#include "fp8_tiles.cuh"

namespace rankc::runtime::cuda {

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
      to[0][i] = through<T>(to[0][i]);
      to[1][i] = through<T>(to[1][i]);
    }
  }
};

/// Both gradients, which must be all columns of one fp8 tensor.
template <class T>
swiglu_gradients<T> swiglu_gradients_of(const lane& on, const char* name, at dgate, at dup, at dy, at gate,
                                        at up, int width, int stride) {
  if (dup.byte != dgate.byte + width || stride != 2 * width)
    fail(on, "RC5132: {}: dgate and dup must be all columns of one tensor", name);
  return {on.at<T>(dy), on.at<T>(gate), on.at<T>(up), width, stride};
}

}  // namespace rankc::runtime::cuda
