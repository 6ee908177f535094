// SPDX-License-Identifier: Apache-2.0
// Linear layers with fp8 operands that have a scale for each row. An operand that is summed along its rows
// uses the elements rounded by row scales. An operand that is summed along its columns uses those rounded by
// column scales.
#include "fp8_lines.hpp"
#include "gemm.hpp"

#include <rankc/runtime/host/kernels.hpp>

namespace rankc::runtime::host {
namespace {

using runtime::fp8_rows_layout;

fp8_rows_layout layout_of(int rows, int columns) {
  return {static_cast<std::size_t>(rows), static_cast<std::size_t>(columns)};
}

template <class T, int Which>
const T* by_rows(const lane& on, at q, int rows, int columns) {
  const fp8_rows_layout parts = layout_of(rows, columns);
  return lines_as_numbers<e4m3, T, Which>(on.at<e4m3>(q), on.at<float>(q + parts.row_factors()), parts.rows,
                                          parts.columns);
}
template <class T, int Which>
const T* by_columns(const lane& on, at q, int rows, int columns) {
  const fp8_rows_layout parts = layout_of(rows, columns);
  return lines_as_numbers<e4m3, T, Which>(on.at<e4m3>(q + parts.by_columns()),
                                          on.at<float>(q + parts.column_factors()), parts.columns,
                                          parts.rows);
}

}  // namespace

template <class T>
void to_e4m3_rows(const lane& on, at q, at x, int rows, int columns) {
  const fp8_rows_layout parts = layout_of(rows, columns);
  const T* from = on.at<T>(x);
  e4m3 *straight = on.at<e4m3>(q), *turned = on.at<e4m3>(q + parts.by_columns());
  float *of_rows = on.at<float>(q + parts.row_factors()),
        *of_columns = on.at<float>(q + parts.column_factors());
  for (std::size_t r = 0; r < parts.rows; ++r)
    of_rows[r] = round_line(straight + r * parts.columns, from + r * parts.columns, parts.columns, 1,
                            &runtime::fp8_row_scale);
  for (std::size_t c = 0; c < parts.columns; ++c)
    of_columns[c] =
        round_line(turned + c * parts.rows, from + c, parts.rows, parts.columns, &runtime::fp8_row_scale);
}

template <class T>
void linear_fp8_rows(const lane& on, at y, at x, at w, int tokens, int in, int out) {
  gemm(form::plain, form::transposed, tokens, out, in, T(1), by_rows<T, 0>(on, x, tokens, in), in,
       by_rows<T, 1>(on, w, out, in), in, T(0), on.at<T>(y), out);
}
template <class T>
void linear_dx_fp8_rows(const lane& on, at dx, at dy, at w, int tokens, int in, int out, bool accumulate) {
  gemm(form::plain, form::transposed, tokens, in, out, T(1), by_rows<T, 0>(on, dy, tokens, out), out,
       by_columns<T, 1>(on, w, out, in), out, T(accumulate), on.at<T>(dx), in);
}
template <class T>
void linear_dw_fp8_rows(const lane& on, at dw, at dy, at x, int tokens, int in, int out, bool accumulate) {
  gemm(form::plain, form::transposed, out, in, tokens, T(1), by_columns<T, 0>(on, dy, tokens, out), tokens,
       by_columns<T, 1>(on, x, tokens, in), tokens, T(accumulate), on.at<T>(dw), in);
}

template decltype(to_e4m3_rows<float>) to_e4m3_rows<float>;
template decltype(to_e4m3_rows<double>) to_e4m3_rows<double>;
template decltype(linear_fp8_rows<float>) linear_fp8_rows<float>;
template decltype(linear_fp8_rows<double>) linear_fp8_rows<double>;
template decltype(linear_dx_fp8_rows<float>) linear_dx_fp8_rows<float>;
template decltype(linear_dx_fp8_rows<double>) linear_dx_fp8_rows<double>;
template decltype(linear_dw_fp8_rows<float>) linear_dw_fp8_rows<float>;
template decltype(linear_dw_fp8_rows<double>) linear_dw_fp8_rows<double>;

}  // namespace rankc::runtime::host
