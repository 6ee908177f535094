// SPDX-License-Identifier: Apache-2.0
// Products with a weight, and biases.
#include "rows.hpp"

namespace field::products {

/// y = x w^T. Shapes: x (tokens, in), w (out, in).
void linear(call& c) {
  const matrix &x = c.in("x"), &w = c.in("w");
  expect(x.is.cols == w.is.cols, "linear: x and w differ in their columns");
  matrix& y = c.out("y", x.is.rows, w.is.rows);
  for (std::int64_t t = 0; t < x.is.rows; ++t)
    for (std::int64_t o = 0; o < w.is.rows; ++o) {
      element sum = 0;
      for (std::int64_t i = 0; i < x.is.cols; ++i) sum = add(sum, multiply(x.row(t)[i], w.row(o)[i]));
      y.row(t)[o] = sum;
    }
}

void linear_dx(call& c) {
  const matrix &dy = c.in("dy"), &w = c.in("w");
  expect(dy.is.cols == w.is.rows, "linear_dx: dy has not as many columns as w has rows");
  matrix& dx = c.out("dx", dy.is.rows, w.is.cols);
  for (std::int64_t t = 0; t < dy.is.rows; ++t)
    for (std::int64_t o = 0; o < w.is.rows; ++o)
      for (std::int64_t i = 0; i < w.is.cols; ++i)
        dx.row(t)[i] = add(dx.row(t)[i], multiply(dy.row(t)[o], w.row(o)[i]));
}

void linear_dw(call& c) {
  const matrix &dy = c.in("dy"), &x = c.in("x");
  expect(dy.is.rows == x.is.rows, "linear_dw: dy and x differ in their tokens");
  matrix& dw = c.out("dw", dy.is.cols, x.is.cols);
  for (std::int64_t t = 0; t < x.is.rows; ++t)
    for (std::int64_t o = 0; o < dy.is.cols; ++o)
      for (std::int64_t i = 0; i < x.is.cols; ++i)
        dw.row(o)[i] = add(dw.row(o)[i], multiply(dy.row(t)[o], x.row(t)[i]));
}

void bias(call& c) {
  const matrix &x = c.in("x"), &b = c.in("b");
  expect(b.is.rows == 1 && b.is.cols == x.is.cols, "bias: b is not as wide as x");
  matrix& y = c.out("y", x.is.rows, x.is.cols, x.is.unit);
  for (std::int64_t t = 0; t < x.is.rows; ++t)
    for (std::int64_t i = 0; i < x.is.cols; ++i) y.row(t)[i] = add(x.row(t)[i], b.of[i]);
}

void bias_grad(call& c) {
  const matrix& dy = c.in("dy");
  matrix& db = c.out("db", 1, dy.is.cols);
  for (std::int64_t t = 0; t < dy.is.rows; ++t)
    for (std::int64_t i = 0; i < dy.is.cols; ++i) db.of[i] = add(db.of[i], dy.row(t)[i]);
}

}  // namespace field::products
