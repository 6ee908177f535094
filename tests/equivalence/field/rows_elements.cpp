// SPDX-License-Identifier: Apache-2.0
// Ops that take an element at a time, and features taken apart and put together. Of a product with a drawn factor, such
// as swiglu = silu(gate) up, only the factor is drawn.
#include "rows.hpp"

#include <algorithm>

namespace field::elements {

namespace {

constexpr std::uint64_t gelu_key = key_of("gelu"), gelu_slope = key_of("gelu'"), sigmoid_key = key_of("sigmoid"),
                        sigmoid_slope = key_of("sigmoid'"), silu_key = key_of("silu"), silu_slope = key_of("silu'");

void expect_alike(const matrix& a, const matrix& b) {
  expect(a.is.rows == b.is.rows && a.is.cols == b.is.cols, "an elementwise op of operands of two sizes");
}
matrix& out_like(call& c, std::string_view port, const matrix& x) {
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

/// How many pieces there are of both parts, and how wide they are.
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
  expect(first.is.rows == x.is.rows && second.is.rows == x.is.rows && first.is.cols + second.is.cols == x.is.cols,
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
    std::copy_n(second.of.data() + n * p.right, p.right, std::copy_n(first.of.data() + n * p.left, p.left, to));
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
void clear(call& c) { c.out("y"); }

void gelu(call& c) {
  map(c, "y", "x", [](element x) { return draw(mix(gelu_key, x)); });
}
void gelu_grad(call& c) {
  map(c, "dx", "dy", "x", [](element dy, element x) { return multiply(dy, draw(mix(gelu_slope, x))); });
}
void sigmoid(call& c) {
  map(c, "y", "x", [](element x) { return draw(mix(sigmoid_key, x)); });
}
void sigmoid_grad(call& c) {
  map(c, "dx", "dy", "y", [](element dy, element y) { return multiply(dy, draw(mix(sigmoid_slope, y))); });
}
void swiglu(call& c) {
  map(c, "y", "gate", "up", [](element gate, element up) { return multiply(draw(mix(silu_key, gate)), up); });
}
void swiglu_grad(call& c) {
  const matrix &dy = c.in("dy"), &gate = c.in("gate"), &up = c.in("up");
  expect_alike(dy, gate), expect_alike(dy, up);
  matrix &dgate = out_like(c, "dgate", gate), &dup = out_like(c, "dup", up);
  for (std::size_t i = 0; i < dy.of.size(); ++i) {
    dgate.of[i] = multiply(dy.of[i], multiply(draw(mix(silu_slope, gate.of[i])), up.of[i]));
    dup.of[i] = multiply(dy.of[i], draw(mix(silu_key, gate.of[i])));
  }
}

void split(call& c) { take_apart(c, rows_of); }
void split_heads(call& c) { take_apart(c, heads_of); }
void concat(call& c) { put_together(c, rows_of); }
void concat_heads(call& c) { put_together(c, heads_of); }

}  // namespace field::elements
