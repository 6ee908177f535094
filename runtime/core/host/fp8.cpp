// SPDX-License-Identifier: Apache-2.0
// Linear layers with fp8 operands. The operands are widened to T before the GEMM, so sums are in T.
#include "fp8_lines.hpp"
#include "gemm.hpp"

#include <rankc/runtime/host/kernels.hpp>

namespace rankc::runtime::host {
namespace {

runtime::fp8_layout layout_of(int rows, int columns) {
  return {static_cast<std::size_t>(rows), static_cast<std::size_t>(columns)};
}

template <class F, class T>
void round_to(const lane& on, at q, at x, int rows, int columns) {
  const runtime::fp8_layout parts = layout_of(rows, columns);
  *on.at<float>(q + parts.factor()) =
      round_line(on.at<F>(q), on.at<T>(x), parts.rows * parts.columns, 1, &runtime::fp8_scale<F>);
}

template <class F, class T, int Which>
const T* numbers(const lane& on, at q, int rows, int columns) {
  const runtime::fp8_layout parts = layout_of(rows, columns);
  return lines_as_numbers<F, T, Which>(on.at<F>(q), on.at<float>(q + parts.factor()), 1,
                                       parts.rows * parts.columns);
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

}  // namespace rankc::runtime::host
