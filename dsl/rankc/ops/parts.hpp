// SPDX-License-Identifier: Apache-2.0
// Split and concat along the features: of whole rows, or inside each head.
#pragma once
#include <rankc/trace/backward.hpp>

#include <initializer_list>

namespace rankc {

constexpr value_pair split(operand x, dim first, dim second);
constexpr value concat(operand first, value second, dim whole);

namespace detail {
/// True if each head of `whole` is a head of `left` followed by a head of `right`.
constexpr bool are_parts_of_heads(const dim& left, const dim& right, const dim& whole) {
  for (const dim& d : {left, right, whole})
    if (d.unit < 1) return false;
  return left.count() == whole.count() && right.count() == whole.count() &&
         left.unit + right.unit == whole.unit;
}
constexpr sentence& put_units(sentence& s, const dim& d) {
  s << d.name << "=" << d.size;
  if (d.unit != 1) s << " in units of " << d.unit;
  return s;
}
/// Complains if the parts do not make up the whole. Features may be sharded only if the split is inside each
/// head. Otherwise a rank's shard of the whole would not be the shards of the two parts.
constexpr void check_parts(complaint& c, std::string_view who, const type& x, const op& o) {
  const dim &left = o.with.first, &right = o.with.second, &whole = o.with.whole;
  for (const dim& d : {left, right, whole}) trace::check_dim(c, d);
  if (c.said || are_parts_of_heads(left, right, whole)) return;
  if (left.size + right.size != whole.size || left.unit != whole.unit || right.unit != whole.unit) {
    put_units(put_units(put_units(c.begin(), left) << " and ", right) << " do not make up ", whole);
    c.text << "; expected features in its unit that add up to it, or as many heads, of sizes that add up to "
              "its heads'";
    return;
  }
  for (axis a : axes)
    if (x[a] == V(1))
      c.found(a, who, x, "whole rows, or parts of each head (a rank does not have its shard of either part)",
              "all_gather it first");
}
constexpr void split_rule(complaint& c, types in, type* out, const op& o) {
  out[0] = out[1] = in[0];
  if (!placement_rules::rows(c, "the value", in[0])) return;
  out[0].shape[1] = o.with.first;
  out[1].shape[1] = o.with.second;
  check_parts(c, "the value", in[0], o);
}
constexpr void concat_rule(complaint& c, types in, type* out, const op& o) {
  out[0] = in[0];
  if (!placement_rules::rows(c, "the left operand", in[0]) ||
      !placement_rules::rows(c, "the right operand", in[1]))
    return;
  for (axis a : axes) out[0][a] = placement_rules::sum_over(c, a, in[0], in[1]);
  out[0].shape[1] = o.with.whole;
  check_parts(c, "the left operand", in[0], o);
}
constexpr void give_parts(backward& b) {
  const auto [first, second] = rankc::split(b.gradient("y"), b.of.with.first, b.of.with.second);
  b.give("first", first);
  b.give("second", second);
}
constexpr void give_whole(backward& b) {
  const value first = b.gradient("first"), second = b.gradient("second");
  b.give("x", rankc::concat(first, second, b.of.with.whole));
}
}  // namespace detail

namespace ops {

inline constexpr op_row split{
    .name = "split",
    .ports = {out("first", "tokens left"), out("second", "tokens right"), in("x", "tokens whole")},
    .rule = detail::split_rule,
    .dual = detail::give_whole,
    .sizes = "tokens left right"};
inline constexpr op_row split_heads{
    .name = "split_heads",
    .ports = {out("first", "tokens heads*left"), out("second", "tokens heads*right"),
              in("x", "tokens heads*dim")},
    .rule = detail::split_rule,
    .dual = detail::give_whole,
    .kernel = "split",
    .sizes = "tokens*heads left right"};

inline constexpr op_row concat{
    .name = "concat",
    .ports = {out("y", "tokens whole"), in("first", "tokens left"), in("second", "tokens right")},
    .rule = detail::concat_rule,
    .dual = detail::give_parts,
    .sizes = "tokens left right"};
inline constexpr op_row concat_heads{.name = "concat_heads",
                                     .ports = {out("y", "tokens heads*dim"), in("first", "tokens heads*left"),
                                               in("second", "tokens heads*right")},
                                     .rule = detail::concat_rule,
                                     .dual = detail::give_parts,
                                     .kernel = "concat",
                                     .sizes = "tokens*heads left right"};

}  // namespace ops

/// Splits the features in two. If both parts have as many heads as x, each head is split. Heads may be
/// sharded then.
/// Shapes: x (tokens, whole); results (tokens, first) and (tokens, second).
/// Errors: RC210.
constexpr value_pair split(operand x, dim first, dim second) {
  trace& t = *x.v.in;
  const dim whole = t.of(x.v).shape[1];
  const op_row& kind = detail::are_parts_of_heads(first, second, whole) ? ops::split_heads : ops::split;
  const value made =
      t.apply(kind, {x.v}, x.from, {.with = {.first = first, .second = second, .whole = whole}});
  return {made, result(made, 1)};
}
/// Concatenates the features. If both operands have as many heads as `whole`, the elements of each head are
/// concatenated.
/// Shapes: first (tokens, left), second (tokens, right); result (tokens, whole).
/// Errors: RC210.
constexpr value concat(operand first, value second, dim whole) {
  trace& t = *second.in;
  const dim left = t.of(first.v).shape[1], right = t.of(second).shape[1];
  const op_row& kind = detail::are_parts_of_heads(left, right, whole) ? ops::concat_heads : ops::concat;
  return t.apply(kind, {first.v, second}, first.from,
                 {.with = {.first = left, .second = right, .whole = whole}});
}

}  // namespace rankc
