// SPDX-License-Identifier: Apache-2.0
// The kernels of gates: products, multiples, the sigmoid. Each kernel reads an element's operands before it
// writes, so an output may be one of the inputs.
#include "exp.hpp"

#include <rankc/runtime/host/kernels.hpp>

namespace rankc::runtime::host {

template <class T>
void mul(const lane& on, at y, at a, at b, std::size_t count) {
  T* to = on.at<T>(y);
  const T *left = on.at<T>(a), *right = on.at<T>(b);
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i) to[i] = left[i] * right[i];
}

template <class T>
void mul_grad(const lane& on, at da, at db, at dy, at a, at b, std::size_t count) {
  T *to_left = on.at<T>(da), *to_right = on.at<T>(db);
  const T *grad = on.at<T>(dy), *left = on.at<T>(a), *right = on.at<T>(b);
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i) {
    const T d = grad[i], u = left[i], v = right[i];
    to_left[i] = d * v;
    to_right[i] = d * u;
  }
}

template <class T>
void scale(const lane& on, at y, at x, std::size_t count, double factor) {
  T* to = on.at<T>(y);
  const T *from = on.at<T>(x), by = static_cast<T>(factor);
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i) to[i] = from[i] * by;
}

template <class T>
void sigmoid(const lane& on, at y, at x, std::size_t count) {
  T* to = on.at<T>(y);
  const T* from = on.at<T>(x);
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i) to[i] = sigmoid(from[i]);
}

template <class T>
void sigmoid_grad(const lane& on, at dx, at dy, at y, std::size_t count) {
  T* to = on.at<T>(dx);
  const T *grad = on.at<T>(dy), *made = on.at<T>(y);
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i) to[i] = grad[i] * made[i] * (1 - made[i]);
}

template decltype(mul<float>) mul<float>;
template decltype(mul<double>) mul<double>;
template decltype(mul_grad<float>) mul_grad<float>;
template decltype(mul_grad<double>) mul_grad<double>;
template decltype(scale<float>) scale<float>;
template decltype(scale<double>) scale<double>;
template void sigmoid<float>(const lane&, at, at, std::size_t);
template void sigmoid<double>(const lane&, at, at, std::size_t);
template decltype(sigmoid_grad<float>) sigmoid_grad<float>;
template decltype(sigmoid_grad<double>) sigmoid_grad<double>;

}  // namespace rankc::runtime::host
