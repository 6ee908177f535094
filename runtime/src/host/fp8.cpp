// SPDX-License-Identifier: Apache-2.0
// Linear layers on operands of eight bits: these are numbers again when they are multiplied, so that sums are of T.
#include "gemm.hpp"

#include <rankc/runtime/fp8.hpp>
#include <rankc/runtime/host/kernels.hpp>

#include <vector>

namespace rankc::host {
namespace {

template <class F, class T>
void round_to(const lane& on, at q, at x, int rows, int columns) {
  const runtime::fp8_layout parts{static_cast<std::size_t>(rows), static_cast<std::size_t>(columns)};
  const std::size_t elements = parts.rows * parts.columns;
  const T* from = on.at<T>(x);
  T largest = 0;
  for (std::size_t i = 0; i < elements; ++i) largest = std::max(largest, std::abs(from[i]));
  const float scale = runtime::fp8_scale<F>(static_cast<float>(largest));
  F* to = on.at<F>(q);
  for (std::size_t i = 0; i < elements; ++i) to[i] = runtime::to_fp8<F>(static_cast<float>(from[i]) * scale);
  *on.at<float>(q + parts.factor()) = 1 / scale;
}

/// An operand as numbers, in memory of the thread that lasts until it is next asked for the same.
template <class F, class T, int Which>
const T* numbers(const lane& on, at q, int rows, int columns) {
  thread_local std::vector<T> all;
  const runtime::fp8_layout parts{static_cast<std::size_t>(rows), static_cast<std::size_t>(columns)};
  const std::size_t elements = parts.rows * parts.columns;
  if (all.size() < elements) all.resize(elements);
  const T factor = *on.at<float>(q + parts.factor());
  const F* from = on.at<F>(q);
  for (std::size_t i = 0; i < elements; ++i) all[i] = runtime::from_fp8<T>(from[i]) * factor;
  return all.data();
}

}  // namespace

template <class T>
void to_e4m3(const lane& on, at q, at x, int rows, int columns) {
  round_to<e4m3, T>(on, q, x, rows, columns);
}
template <class T>
void to_e5m2(const lane& on, at q, at x, int rows, int columns) {
  round_to<e5m2, T>(on, q, x, rows, columns);
}

template <class T>
void linear_fp8(const lane& on, at y, at x, at w, int tokens, int in, int out) {
  gemm(form::plain, form::transposed, tokens, out, in, T(1), numbers<e4m3, T, 0>(on, x, tokens, in), in,
       numbers<e4m3, T, 1>(on, w, out, in), in, T(0), on.at<T>(y), out);
}
template <class T>
void linear_dx_fp8(const lane& on, at dx, at dy, at w, int tokens, int in, int out, bool accumulate) {
  gemm(form::plain, form::plain, tokens, in, out, T(1), numbers<e5m2, T, 0>(on, dy, tokens, out), out,
       numbers<e4m3, T, 1>(on, w, out, in), in, T(accumulate), on.at<T>(dx), in);
}
template <class T>
void linear_dw_fp8(const lane& on, at dw, at dy, at x, int tokens, int in, int out, bool accumulate) {
  gemm(form::transposed, form::plain, out, in, tokens, T(1), numbers<e5m2, T, 0>(on, dy, tokens, out), out,
       numbers<e4m3, T, 1>(on, x, tokens, in), in, T(accumulate), on.at<T>(dw), in);
}

template decltype(to_e4m3<float>) to_e4m3<float>;
template decltype(to_e4m3<double>) to_e4m3<double>;
template decltype(to_e5m2<float>) to_e5m2<float>;
template decltype(to_e5m2<double>) to_e5m2<double>;
template decltype(linear_fp8<float>) linear_fp8<float>;
template decltype(linear_fp8<double>) linear_fp8<double>;
template decltype(linear_dx_fp8<float>) linear_dx_fp8<float>;
template decltype(linear_dx_fp8<double>) linear_dx_fp8<double>;
template decltype(linear_dw_fp8<float>) linear_dw_fp8<float>;
template decltype(linear_dw_fp8<double>) linear_dw_fp8<double>;

}  // namespace rankc::host
