// SPDX-License-Identifier: Apache-2.0
// Elementwise results.
#pragma once
#include "rows.hpp"

#include <algorithm>

namespace field::elements {

inline void expect_alike(const matrix& a, const matrix& b) {
  expect(a.is.rows == b.is.rows && a.is.cols == b.is.cols, "an elementwise op of operands of two sizes");
}
inline matrix& out_like(call& c, std::string_view port, const matrix& x) {
  return c.out(port, x.is.rows, x.is.cols, x.is.unit);
}

template <class F>
void map(call& c, std::string_view y, std::string_view x, F f) {
  const matrix& from = c.in(x);
  matrix& to = out_like(c, y, from);
  std::transform(from.of.begin(), from.of.end(), to.of.begin(), f);
}
template <class F>
void map(call& c, std::string_view y, std::string_view a, std::string_view b, F f) {
  const matrix &left = c.in(a), &right = c.in(b);
  expect_alike(left, right);
  matrix& to = out_like(c, y, left);
  std::transform(left.of.begin(), left.of.end(), right.of.begin(), to.of.begin(), f);
}

}  // namespace field::elements
