// SPDX-License-Identifier: Apache-2.0
// Activations and their gradients, for one element.
#pragma once
#include "../device/device.cuh"

namespace rankc::runtime::cuda {

/// tanh form: gelu(x) = x / 2 (1 + tanh(u)) = x sigmoid(2 u), with 2 u = 2 sqrt(2 / pi) (x + 0.044715 x^3).
inline constexpr double gelu_of_x = 2 * 0.7978845608028654, gelu_of_cube = gelu_of_x * 0.044715;

/// sigmoid(2 u); square = x^2.
template <class T>
__device__ float gelu_part(float x, float square) {
  constexpr double unit = exp_unit<T>;
  return sigmoid_of_units<T>(x * (float(unit * gelu_of_x) + float(unit * gelu_of_cube) * square));
}
template <class T>
struct gelu_of {
  __device__ float operator()(float x) const { return x * gelu_part<T>(x, x * x); }
};
template <class T>
struct gelu_grad_of {
  __device__ float operator()(float dy, float x) const {
    const float square = x * x, s = gelu_part<T>(x, square);
    return dy * (s + x * (s - s * s) * (float(gelu_of_x) + float(3 * gelu_of_cube) * square));
  }
};

/// silu(gate) up.
template <class T>
__device__ float swiglu_of(float gate, float up) {
  return gate * (sigmoid<T>(gate) * up);
}
/// dgate = dy up s (1 + gate (1 - s)), dup = dy gate s, with s = sigmoid(gate). They replace gate and up.
template <class T>
__device__ void take_swiglu_grad(float dy, float& gate, float& up) {
  const float s = sigmoid<T>(gate), of_up = dy * gate * s;
  gate = dy * up * s * (1.0f + gate * (1.0f - s));
  up = of_up;
}

}  // namespace rankc::runtime::cuda
