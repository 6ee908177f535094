// SPDX-License-Identifier: Apache-2.0
// Elementwise kernels: GELU, SwiGLU and addition. Each kernel reads an element's operands before it writes,
// so an output may be one of the inputs.
#include "exp.hpp"

#include <rankc/runtime/host/kernels.hpp>

namespace rankc::runtime::host {

// The tanh form through the sigmoid: (1 + tanh(u)) / 2 = sigmoid(2u), with u = sqrt(2/pi) (x + 0.044715 x^3).
constexpr double gelu_linear = 2 * 0.79788456080286535588, gelu_cubic = gelu_linear * 0.044715;

template <class T>
void gelu(const lane& on, at y, at x, std::size_t count) {
  T* to = on.at<T>(y);
  const T* from = on.at<T>(x);
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i) {
    const T v = from[i];
    to[i] = v * sigmoid(v * (T(gelu_linear) + T(gelu_cubic) * v * v));
  }
}

template <class T>
void gelu_grad(const lane& on, at dx, at dy, at x, std::size_t count) {
  T* to = on.at<T>(dx);
  const T *grad = on.at<T>(dy), *from = on.at<T>(x);
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i) {
    const T v = from[i], g = grad[i];
    const T gate = sigmoid(v * (T(gelu_linear) + T(gelu_cubic) * v * v));
    const T slope = T(gelu_linear) + 3 * T(gelu_cubic) * v * v;
    to[i] = g * (gate + v * gate * (1 - gate) * slope);
  }
}

template <class T>
void swiglu(const lane& on, at y, at gate, at up, std::size_t count) {
  T* to = on.at<T>(y);
  const T *gates = on.at<T>(gate), *ups = on.at<T>(up);
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i) to[i] = gates[i] * sigmoid(gates[i]) * ups[i];
}

template <class T>
void swiglu_grad(const lane& on, at dgate, at dup, at dy, at gate, at up, std::size_t count) {
  T *to_gate = on.at<T>(dgate), *to_up = on.at<T>(dup);
  const T *grad = on.at<T>(dy), *gates = on.at<T>(gate), *ups = on.at<T>(up);
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i) {
    const T g = gates[i], u = ups[i], d = grad[i];
    const T s = sigmoid(g);
    to_gate[i] = d * u * (s * (1 + g * (1 - s)));
    to_up[i] = d * (g * s);
  }
}

template <class T>
void add(const lane& on, at y, at a, at b, std::size_t count) {
  T* to = on.at<T>(y);
  const T *left = on.at<T>(a), *right = on.at<T>(b);
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i) to[i] = left[i] + right[i];
}

template decltype(gelu<float>) gelu<float>;
template decltype(gelu<double>) gelu<double>;
template decltype(gelu_grad<float>) gelu_grad<float>;
template decltype(gelu_grad<double>) gelu_grad<double>;
template decltype(swiglu<float>) swiglu<float>;
template decltype(swiglu<double>) swiglu<double>;
template decltype(swiglu_grad<float>) swiglu_grad<float>;
template decltype(swiglu_grad<double>) swiglu_grad<double>;
template decltype(add<float>) add<float>;
template decltype(add<double>) add<double>;

}  // namespace rankc::runtime::host
