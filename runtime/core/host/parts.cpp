// SPDX-License-Identifier: Apache-2.0
// Splits rows into two parts, and concatenates two parts.
#include <rankc/runtime/host/kernels.hpp>

#include <algorithm>

namespace rankc::runtime::host {

template <class T>
void split(const lane& on, at a, at b, at x, int rows, int left, int right) {
  T *to_a = on.at<T>(a), *to_b = on.at<T>(b);
  const T* from = on.at<T>(x);
  for (int n = 0; n < rows; ++n, from += left + right) {
    to_a = std::copy_n(from, left, to_a);
    to_b = std::copy_n(from + left, right, to_b);
  }
}

template <class T>
void concat(const lane& on, at y, at a, at b, int rows, int left, int right) {
  T* to = on.at<T>(y);
  const T *from_a = on.at<T>(a), *from_b = on.at<T>(b);
  for (int n = 0; n < rows; ++n, from_a += left, from_b += right) {
    to = std::copy_n(from_a, left, to);
    to = std::copy_n(from_b, right, to);
  }
}

template decltype(split<float>) split<float>;
template decltype(split<double>) split<double>;
template decltype(concat<float>) concat<float>;
template decltype(concat<double>) concat<double>;

}  // namespace rankc::runtime::host
