// SPDX-License-Identifier: Apache-2.0
// Elementwise sums and products, and splits and concatenations of features.
#include "map.hpp"

#include <algorithm>

namespace field::elements {

namespace {

/// The number of pieces in each of two parts, and their widths.
struct parts {
  std::int64_t count, left, right;
};
parts rows_of(const extent& left, const extent& right) { return {left.rows, left.cols, right.cols}; }
parts heads_of(const extent& left, const extent& right) {
  expect(left.unit > 0 && right.unit > 0 && left.size() / left.unit == right.size() / right.unit,
         "parts of two numbers of heads");
  return {left.size() / left.unit, left.unit, right.unit};
}

template <class Pieces>
void take_apart(call& c, Pieces pieces) {
  const matrix& x = c.in("x");
  matrix &first = c.out("first"), &second = c.out("second");
  expect(first.is.rows == x.is.rows && second.is.rows == x.is.rows &&
             first.is.cols + second.is.cols == x.is.cols,
         "split: sizes do not fit");
  const parts p = pieces(first.is, second.is);
  for (std::int64_t n = 0; n < p.count; ++n) {
    const element* from = x.of.data() + n * (p.left + p.right);
    std::copy_n(from, p.left, first.of.data() + n * p.left);
    std::copy_n(from + p.left, p.right, second.of.data() + n * p.right);
  }
}
template <class Pieces>
void put_together(call& c, Pieces pieces) {
  const matrix &first = c.in("first"), &second = c.in("second");
  expect(first.is.rows == second.is.rows, "concat: sizes do not fit");
  matrix& y = c.out("y", first.is.rows, first.is.cols + second.is.cols);
  const parts p = pieces(first.is, second.is);
  for (std::int64_t n = 0; n < p.count; ++n) {
    element* to = y.of.data() + n * (p.left + p.right);
    std::copy_n(second.of.data() + n * p.right, p.right,
                std::copy_n(first.of.data() + n * p.left, p.left, to));
  }
}

}  // namespace

void add(call& c) { map(c, "y", "a", "b", field::add); }
void mul(call& c) { map(c, "y", "a", "b", multiply); }
void mul_grad(call& c) {
  map(c, "da", "dy", "b", multiply);
  map(c, "db", "dy", "a", multiply);
}
void scale(call& c) {
  map(c, "y", "x", [factor = field::number(c.number)](element x) { return multiply(x, factor); });
}
void copy(call& c) {
  map(c, "y", "x", [](element x) { return x; });
}
void copy_both(call& c) {
  map(c, "first", "x", [](element x) { return x; });
  map(c, "second", "y", [](element y) { return y; });
}
void clear(call& c) { c.out("y"); }

void split(call& c) { take_apart(c, rows_of); }
void split_heads(call& c) { take_apart(c, heads_of); }
void concat(call& c) { put_together(c, rows_of); }
void concat_heads(call& c) { put_together(c, heads_of); }

}  // namespace field::elements
