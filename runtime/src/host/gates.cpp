// SPDX-License-Identifier: Apache-2.0
// What gates are made of: products, multiples, the sigmoid. Each kernel reads an element's operands before it
// writes, so that an output may be one of the inputs.
#include "exp.hpp"

#include <rankc/runtime/host/kernels.hpp>

namespace rankc::host {

template <class T>
void mul(rank& r, at y, at a, at b, std::size_t count) {
  T* to = r.at<T>(y);
  const T *left = r.at<T>(a), *right = r.at<T>(b);
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i) to[i] = left[i] * right[i];
}

template <class T>
void mul_grad(rank& r, at da, at db, at dy, at a, at b, std::size_t count) {
  T *to_left = r.at<T>(da), *to_right = r.at<T>(db);
  const T *grad = r.at<T>(dy), *left = r.at<T>(a), *right = r.at<T>(b);
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i) {
    const T d = grad[i], u = left[i], v = right[i];
    to_left[i] = d * v;
    to_right[i] = d * u;
  }
}

template <class T>
void scale(rank& r, at y, at x, std::size_t count, double factor) {
  T* to = r.at<T>(y);
  const T *from = r.at<T>(x), by = static_cast<T>(factor);
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i) to[i] = from[i] * by;
}

template <class T>
void sigmoid(rank& r, at y, at x, std::size_t count) {
  T* to = r.at<T>(y);
  const T* from = r.at<T>(x);
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i) to[i] = sigmoid(from[i]);
}

template <class T>
void sigmoid_grad(rank& r, at dx, at dy, at y, std::size_t count) {
  T* to = r.at<T>(dx);
  const T *grad = r.at<T>(dy), *made = r.at<T>(y);
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i) to[i] = grad[i] * made[i] * (1 - made[i]);
}

template decltype(mul<float>) mul<float>;
template decltype(mul<double>) mul<double>;
template decltype(mul_grad<float>) mul_grad<float>;
template decltype(mul_grad<double>) mul_grad<double>;
template decltype(scale<float>) scale<float>;
template decltype(scale<double>) scale<double>;
template void sigmoid<float>(rank&, at, at, std::size_t);
template void sigmoid<double>(rank&, at, at, std::size_t);
template decltype(sigmoid_grad<float>) sigmoid_grad<float>;
template decltype(sigmoid_grad<double>) sigmoid_grad<double>;

}  // namespace rankc::host
