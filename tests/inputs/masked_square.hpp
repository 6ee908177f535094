// SPDX-License-Identifier: Apache-2.0
// A user-defined loss that leaves ignored labels out: the sum of x^2 over tokens whose label counts, divided
// by the number of such labels in the step.
#pragma once

#if defined(RANKC_HOST_KERNELS)

#include <rankc/runtime/host/rank.hpp>

#include <cstdint>

namespace user {

template <class T>
void masked_square(const rankc::host::lane& on, rankc::runtime::at loss, rankc::runtime::at x,
                   rankc::runtime::at targets, rankc::runtime::at count, std::size_t tokens,
                   std::size_t width, double scale, bool accumulate) {
  const T* from = on.at<T>(x);
  const std::int32_t* labels = on.at<std::int32_t>(targets);
  double sum = 0;
  for (std::size_t i = 0; i < tokens * width; ++i)
    if (labels[i / width] >= 0) sum += static_cast<double>(from[i]) * from[i];
  T& out = *on.at<T>(loss);
  const double number = *on.at<T>(count);
  const double mean = number > 0 ? sum / number : 0;
  out = static_cast<T>((accumulate ? out : T{}) + scale * mean);
}
template <class T>
void masked_square_grad(const rankc::host::lane& on, rankc::runtime::at dx, rankc::runtime::at x,
                        rankc::runtime::at targets, rankc::runtime::at count, std::size_t tokens,
                        std::size_t width, double scale) {
  T* to = on.at<T>(dx);
  const T* from = on.at<T>(x);
  const std::int32_t* labels = on.at<std::int32_t>(targets);
  const double number = *on.at<T>(count);
  for (std::size_t i = 0; i < tokens * width; ++i)
    to[i] = labels[i / width] >= 0 ? static_cast<T>(2 * scale * from[i] / number) : T{};
}

}  // namespace user

#else

#include <rankc/ops.hpp>

namespace user {

using namespace rankc;
using namespace rankc::ports;

/// The labels are sharded like the tokens of x, and every rank has the step's number of labels.
constexpr void check_labels(complaint& c, axis a, const type& x, const type& targets, const type& count) {
  const placement expected = x[a] == V(1) ? I : x[a];
  if (x[a] == P) c.found(a, "the value", x, "R, I or V", placement_rules::reduce_first);
  if (targets[a] != expected)
    c.found(a, "the labels", targets, "the placement of the tokens", "take the labels of these tokens");
  if (count[a] != I) c.found(a, "the number of labels", count, "invariant (I)", "take label_count(c)");
}
constexpr void masked_square_rule(complaint& c, types in, type* out, const op&) {
  for (axis a : axes) {
    check_labels(c, a, in[0], in[1], in[2]);
    out[0][a] = in[0][a].k == placement::V ? P : in[0][a];
  }
}
constexpr void masked_square_grad_rule(complaint& c, types in, type* out, const op&) {
  for (axis a : axes) {
    check_labels(c, a, in[0], in[1], in[2]);
    out[0][a] = in[0][a];
  }
}

inline constexpr op_row masked_square_grad_row{
    .name = "masked_square_grad",
    .ports = {out("dx", "tokens width"), in("x", "tokens width"), in("targets", "tokens").index(),
              in("count", "1").wide()},
    .rule = masked_square_grad_rule,
    .kernel = "user::masked_square_grad",
    .sizes = "tokens width number",
    .header = "masked_square.hpp"};
inline constexpr op_row masked_square_row{
    .name = "masked_square",
    .ports = {sum("loss", ""), in("x", "tokens width"), in("targets", "tokens").index(),
              in("count", "1").wide()},
    .rule = masked_square_rule,
    .dual =
        [](backward& b) { b.give("x", b.apply(masked_square_grad_row, {b["x"], b["targets"], b["count"]})); },
    .kernel = "user::masked_square",
    .sizes = "tokens width number",
    .header = "masked_square.hpp"};

/// The sum of |x|^2 over tokens whose label counts, divided by their number in the step, times `scale`.
/// Shapes: x (tokens, width), targets (tokens), count (1).
constexpr value masked_square(operand x, value targets, value count, double scale) {
  return x.v.in->apply(masked_square_row, {x.v, targets, count}, x.from, {.with = {.factor = scale}});
}

}  // namespace user

#endif
