// SPDX-License-Identifier: Apache-2.0
// Sums over routers, and their losses. A row holds the sums of a group of tokens, in three blocks per layer:
// how often each expert was chosen; the sum of each expert's scores; the sum of squares and the number of
// dropped picks.
#include "rows.hpp"

#include <algorithm>

namespace field::balance {

namespace {

/// The factors by which a loss multiplies the sums of one group.
class factors {
 public:
  factors(const matrix& whole, std::int64_t group)
      : whole_(whole), group_(group), experts_(whole.is.unit), of_(extent{1, whole.is.cols}) {
    expect(experts_ > 0 && whole.is.cols % (3 * experts_) == 0,
           "sums of routers that are not of whole layers");
  }
  std::int64_t layers() const { return whole_.is.cols / (3 * experts_); }
  std::int64_t experts() const { return experts_; }
  element choices(std::int64_t layer, std::int64_t expert) const {
    return whole_.row(group_)[3 * layer * experts_ + expert];
  }
  element dropped(std::int64_t layer) const { return whole_.row(group_)[(3 * layer + 2) * experts_ + 1]; }
  element& of_score(std::int64_t layer, std::int64_t expert) {
    return of_.row(0)[(3 * layer + 1) * experts_ + expert];
  }
  element& of_squares(std::int64_t layer) { return of_.row(0)[(3 * layer + 2) * experts_]; }
  const matrix& all() const { return of_; }

 private:
  const matrix& whole_;
  std::int64_t group_, experts_;
  matrix of_;
};

/// An expert's scores in a layer are multiplied by its choices in all layers; in take_each_layer, by those in
/// that layer.
void take_all_layers(factors& f) {
  for (std::int64_t e = 0; e < f.experts(); ++e) {
    element sum = 0;
    for (std::int64_t l = 0; l < f.layers(); ++l) sum = add(sum, f.choices(l, e));
    for (std::int64_t l = 0; l < f.layers(); ++l) f.of_score(l, e) = sum;
  }
}
void take_each_layer(factors& f) {
  for (std::int64_t l = 0; l < f.layers(); ++l)
    for (std::int64_t e = 0; e < f.experts(); ++e) f.of_score(l, e) = f.choices(l, e);
}
/// A layer's sum of squares is divided by its number of choices.
void take_squares(factors& f) {
  for (std::int64_t l = 0; l < f.layers(); ++l) {
    element sum = 0;
    for (std::int64_t e = 0; e < f.experts(); ++e) sum = add(sum, f.choices(l, e));
    f.of_squares(l) = inverse(sum);
  }
}

/// A layer's sum of squares is multiplied by its number of dropped picks.
void take_overflow(factors& f) {
  expect(f.experts() >= 2, "an overflow of less than two experts");
  for (std::int64_t l = 0; l < f.layers(); ++l) f.of_squares(l) = f.dropped(l);
}

using take_factors = void (*)(factors&);

void take_loss(call& c, take_factors take) {
  const matrix &whole = c.in("whole"), &s = c.in("s");
  expect(whole.is.rows == s.is.rows && whole.is.cols == s.is.cols, "a loss of sums of two sizes");
  element loss = 0;
  for (std::int64_t g = 0; g < s.is.rows; ++g) {
    factors f(whole, g);
    take(f);
    for (std::int64_t i = 0; i < s.is.cols; ++i) loss = add(loss, multiply(f.all().row(0)[i], s.row(g)[i]));
  }
  c.out("loss", 1, 1).of[0] = multiply(number(c.number), loss);
}
void take_gradient(call& c, take_factors take) {
  const matrix& whole = c.in("whole");
  matrix& ds = c.out("ds", whole.is.rows, whole.is.cols, whole.is.unit);
  for (std::int64_t g = 0; g < whole.is.rows; ++g) {
    factors f(whole, g);
    take(f);
    for (std::int64_t i = 0; i < ds.is.cols; ++i)
      ds.row(g)[i] = multiply(number(c.number), f.all().row(0)[i]);
  }
}

}  // namespace

void all_layers(call& c) { take_loss(c, take_all_layers); }
void all_layers_grad(call& c) { take_gradient(c, take_all_layers); }
void each_layer(call& c) { take_loss(c, take_each_layer); }
void each_layer_grad(call& c) { take_gradient(c, take_each_layer); }
void z(call& c) { take_loss(c, take_squares); }
void z_grad(call& c) { take_gradient(c, take_squares); }
void overflow(call& c) { take_loss(c, take_overflow); }
void overflow_grad(call& c) { take_gradient(c, take_overflow); }

/// Append a layer's sums; the first layer's sums drop out.
void push(call& c) {
  const matrix &s = c.in("s"), &own = c.in("own");
  expect(s.is.rows == own.is.rows && own.is.cols <= s.is.cols, "push: no room for a layer's sums");
  matrix& y = c.out("y", s.is.rows, s.is.cols, s.is.unit);
  for (std::int64_t g = 0; g < y.is.rows; ++g)
    std::copy_n(own.row(g), own.is.cols,
                std::copy_n(s.row(g) + own.is.cols, s.is.cols - own.is.cols, y.row(g)));
}
void push_grad(call& c) {
  const matrix& dy = c.in("dy");
  matrix& down = c.out("down");
  const std::int64_t own = down.is.cols, others = dy.is.cols - own;
  expect(down.is.rows == dy.is.rows && others >= 0, "push_grad: sizes do not fit");
  matrix& ds = c.out("ds", dy.is.rows, dy.is.cols, dy.is.unit);
  for (std::int64_t g = 0; g < dy.is.rows; ++g) {
    std::copy_n(dy.row(g), others, ds.row(g) + own);
    std::copy_n(dy.row(g) + others, own, down.row(g));
  }
}

}  // namespace field::balance
