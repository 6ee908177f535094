// SPDX-License-Identifier: Apache-2.0
// Losses that read a declared input: the sum of x^2 weighted per token, per element, or per step.
#pragma once

#if defined(RANKC_HOST_KERNELS)

#include <rankc/runtime/host/rank.hpp>

namespace user {

/// Adds scale * w x^2 over all elements; `of` is the index of an element's weight.
template <class T>
void sum_weighted(const rankc::host::lane& on, rankc::runtime::at loss, rankc::runtime::at x,
                  rankc::runtime::at weights, std::size_t count, double scale, bool accumulate, auto of) {
  const T *from = on.at<T>(x), *w = on.at<T>(weights);
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += static_cast<double>(w[of(i)]) * from[i] * from[i];
  T& out = *on.at<T>(loss);
  out = static_cast<T>((accumulate ? out : T{}) + scale * sum);
}
template <class T>
void scale_weighted(const rankc::host::lane& on, rankc::runtime::at dx, rankc::runtime::at x,
                    rankc::runtime::at weights, std::size_t count, double scale, auto of) {
  T* to = on.at<T>(dx);
  const T *from = on.at<T>(x), *w = on.at<T>(weights);
  for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<T>(2 * scale * w[of(i)] * from[i]);
}

template <class T>
void token_square(const rankc::host::lane& on, rankc::runtime::at loss, rankc::runtime::at x,
                  rankc::runtime::at weights, std::size_t tokens, std::size_t width, double scale,
                  bool accumulate) {
  sum_weighted<T>(on, loss, x, weights, tokens * width, scale, accumulate,
                  [width](std::size_t i) { return i / width; });
}
template <class T>
void token_square_grad(const rankc::host::lane& on, rankc::runtime::at dx, rankc::runtime::at x,
                       rankc::runtime::at weights, std::size_t tokens, std::size_t width, double scale) {
  scale_weighted<T>(on, dx, x, weights, tokens * width, scale, [width](std::size_t i) { return i / width; });
}
template <class T>
void element_square(const rankc::host::lane& on, rankc::runtime::at loss, rankc::runtime::at x,
                    rankc::runtime::at weights, std::size_t count, double scale, bool accumulate) {
  sum_weighted<T>(on, loss, x, weights, count, scale, accumulate, [](std::size_t i) { return i; });
}
template <class T>
void element_square_grad(const rankc::host::lane& on, rankc::runtime::at dx, rankc::runtime::at x,
                         rankc::runtime::at weights, std::size_t count, double scale) {
  scale_weighted<T>(on, dx, x, weights, count, scale, [](std::size_t i) { return i; });
}
template <class T>
void step_square(const rankc::host::lane& on, rankc::runtime::at loss, rankc::runtime::at x,
                 rankc::runtime::at weight, std::size_t count, double scale, bool accumulate) {
  sum_weighted<T>(on, loss, x, weight, count, scale, accumulate, [](std::size_t) { return 0; });
}
template <class T>
void step_square_grad(const rankc::host::lane& on, rankc::runtime::at dx, rankc::runtime::at x,
                      rankc::runtime::at weight, std::size_t count, double scale) {
  scale_weighted<T>(on, dx, x, weight, count, scale, [](std::size_t) { return 0; });
}

}  // namespace user

#else

#include <rankc/ops.hpp>

namespace user {

using namespace rankc;
using namespace rankc::ports;

/// The weights are sharded like the tokens of x.
constexpr void check_weights(complaint& c, axis a, const type& x, const type& weights) {
  const placement expected = x[a] == V(1) && weights.ndim == 1 ? I : x[a];
  if (x[a] == P) c.found(a, "the value", x, "R, I or V", placement_rules::reduce_first);
  if (weights[a] != expected)
    c.found(a, "the weights", weights, "the placement of the tokens", "take the weights of these tokens");
}
constexpr void weighted_loss(complaint& c, types in, type* out, const op&) {
  for (axis a : axes) {
    check_weights(c, a, in[0], in[1]);
    out[0][a] = in[0][a].k == placement::V ? P : in[0][a];
  }
}
constexpr void weighted_gradient(complaint& c, types in, type* out, const op&) {
  for (axis a : axes) {
    check_weights(c, a, in[0], in[1]);
    out[0][a] = in[0][a];
  }
}

/// Every rank has the step's weight.
constexpr void check_step_weight(complaint& c, axis a, const type& x, const type& weight) {
  if (x[a] == P) c.found(a, "the value", x, "R, I or V", placement_rules::reduce_first);
  if (weight[a] != I) c.found(a, "the weight", weight, "invariant (I)", "take an input of the step");
}
constexpr void step_loss(complaint& c, types in, type* out, const op&) {
  for (axis a : axes) {
    check_step_weight(c, a, in[0], in[1]);
    out[0][a] = in[0][a].k == placement::V ? P : in[0][a];
  }
}
constexpr void step_gradient(complaint& c, types in, type* out, const op&) {
  for (axis a : axes) {
    check_step_weight(c, a, in[0], in[1]);
    out[0][a] = in[0][a];
  }
}

inline constexpr op_row token_square_grad_row{
    .name = "token_square_grad",
    .ports = {out("dx", "tokens width"), in("x", "tokens width"), in("weights", "tokens").wide()},
    .rule = weighted_gradient,
    .kernel = "user::token_square_grad",
    .sizes = "tokens width number",
    .header = "weighted_square.hpp"};
inline constexpr op_row token_square_row{
    .name = "token_square",
    .ports = {sum("loss", ""), in("x", "tokens width"), in("weights", "tokens").wide()},
    .rule = weighted_loss,
    .dual = [](backward& b) { b.give("x", b.apply(token_square_grad_row, {b["x"], b["weights"]})); },
    .kernel = "user::token_square",
    .sizes = "tokens width number",
    .header = "weighted_square.hpp"};
inline constexpr op_row element_square_grad_row{
    .name = "element_square_grad",
    .ports = {out("dx", "tokens width"), in("x", "tokens width"), in("weights", "tokens width").wide()},
    .rule = weighted_gradient,
    .kernel = "user::element_square_grad",
    .sizes = "tokens*width number",
    .header = "weighted_square.hpp"};
inline constexpr op_row element_square_row{
    .name = "element_square",
    .ports = {sum("loss", ""), in("x", "tokens width"), in("weights", "tokens width").wide()},
    .rule = weighted_loss,
    .dual = [](backward& b) { b.give("x", b.apply(element_square_grad_row, {b["x"], b["weights"]})); },
    .kernel = "user::element_square",
    .sizes = "tokens*width number",
    .header = "weighted_square.hpp"};

inline constexpr op_row step_square_grad_row{
    .name = "step_square_grad",
    .ports = {out("dx", "tokens width"), in("x", "tokens width"), in("weight", "1").wide()},
    .rule = step_gradient,
    .kernel = "user::step_square_grad",
    .sizes = "tokens*width number",
    .header = "weighted_square.hpp"};
inline constexpr op_row step_square_row{
    .name = "step_square",
    .ports = {sum("loss", ""), in("x", "tokens width"), in("weight", "1").wide()},
    .rule = step_loss,
    .dual = [](backward& b) { b.give("x", b.apply(step_square_grad_row, {b["x"], b["weight"]})); },
    .kernel = "user::step_square",
    .sizes = "tokens*width number",
    .header = "weighted_square.hpp"};

/// The sum over tokens of weight * |x|^2, times `scale`.
/// Shapes: x (tokens, width), weights (tokens).
constexpr value token_square(operand x, value weights, double scale) {
  return x.v.in->apply(token_square_row, {x.v, weights}, x.from, {.with = {.factor = scale}});
}
/// The sum over elements of weight * x^2, times `scale`.
/// Shapes: x and weights (tokens, width).
constexpr value element_square(operand x, value weights, double scale) {
  return x.v.in->apply(element_square_row, {x.v, weights}, x.from, {.with = {.factor = scale}});
}
/// The weight of the step times the sum over elements of x^2, times `scale`.
/// Shapes: x (tokens, width), weight (1).
constexpr value step_square(operand x, value weight, double scale) {
  return x.v.in->apply(step_square_row, {x.v, weight}, x.from, {.with = {.factor = scale}});
}

}  // namespace user

#endif
