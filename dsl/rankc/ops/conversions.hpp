// SPDX-License-Identifier: Apache-2.0
// Conversions change the placement of a value. Only conversions communicate; those that exchange tokens with
// experts are in expert_exchange.hpp. The backward of a conversion is another conversion, so forward's
// collectives determine backward's.
// Source: Megatron-LM (Shoeybi et al. 2019; Korthikanti et al. 2022): f, g and their sequence-parallel forms.
#pragma once
#include <rankc/trace/backward.hpp>

namespace rankc {

constexpr value replicate(operand x, axis over);
constexpr value all_reduce(operand x, axis over);
constexpr value all_gather(operand x, axis over, std::string_view along);
constexpr value reduce_scatter(operand x, axis over, std::string_view along);
constexpr value all_to_all(operand x, axis over, std::string_view to, int seq, int ring = 1);
constexpr value_pair shift(operand x, value y, axis over, int ring);
constexpr value_pair shift_back(operand x, value y, axis over, int ring);

namespace detail {
/// Changes the placement over one axis from `from` to `to`. V means sharded along the op's dim.
constexpr void convert(complaint& c, types in, type* out, const op& o, placement from, placement to,
                       std::string_view expected, std::string_view otherwise) {
  if (from.k == placement::V) from = V(o.along);
  if (to.k == placement::V) to = V(o.along);
  out[0] = in[0];
  out[0].pending_max = false;
  if (o.over == axis::ep && o.kind->converts != conversion::replicate &&
      o.kind->converts != conversion::all_reduce)
    c.begin() << "it is over ep, whose ranks have tokens and experts of their own; exchange slots of tokens "
                 "over it (to_experts)";
  else if (o.over == axis::etp)
    c.begin() << "it is over etp, whose ranks have received slots of their own; gather these over it "
                 "(gather_slots)";
  else if (in[0][o.over] != from) c.found(o.over, "the value", in[0], expected, otherwise);
  else if (in[0].pending_max != (o.kind->converts == conversion::all_reduce_max))
    c.begin() << "the reduction that is pending over " << name(o.over) << " is a "
              << (in[0].pending_max ? "maximum: take it with all_reduce_max"
                                    : "sum: take it with all_reduce");
  for (axis inner : axes)
    if (o.along >= 0 && index(inner) > index(o.over) && in[0][inner] == V(o.along) && !c.said)
      c.begin() << "the value is sharded along " << in[0].shape[o.along].name << " over " << name(inner)
                << " too, inside " << name(o.over) << ": convert it over " << name(inner) << " first";
  out[0][o.over] = to;
}
constexpr void convert_sum(complaint& c, types in, type* out, const op& o) {
  convert(c, in, out, o, P, I,
          o.kind->converts == conversion::all_reduce_max ? "a pending maximum (P)" : "a pending sum (P)",
          "there is nothing to reduce");
}
/// All-to-all from shards along one dim to shards along the other, over cp or inside each group of a ring.
constexpr void exchange(complaint& c, types in, type* out, const op& o) {
  const type& x = in[0];
  out[0] = x;
  if (!placement_rules::rows(c, "the value", x) || o.along < 0) return;
  const bool in_groups = o.with.ring > 1;
  const auto shards = [&](int along) { return in_groups && along == 1 ? heads_in_ring : V(along); };
  if (o.over != axis::cp) c.begin() << "it is over " << name(o.over) << "; heads are exchanged over cp only";
  else if (x[o.over] != shards(1 - o.along))
    c.found(
        o.over, "the value", x, "sharded along the dim that is put together (V)",
        in_groups || x[o.over].outer < 0 ? "there is nothing to exchange" : "name the ring of its groups");
  for (axis inner : axes)
    if (index(inner) > index(o.over) && x[inner] == V(0) && !c.said)
      c.begin() << "the value is sharded along " << x.shape[0].name << " over " << name(inner)
                << " too, inside " << name(o.over) << ": convert it over " << name(inner) << " first";
  out[0][o.over] = shards(o.along);
}
/// Shifts two tensors around the ring: to the next rank (`by` = 1) or to the previous one (`by` = -1).
constexpr void hand_on(complaint& c, types in, type* out, const op& o, int by) {
  constexpr std::string_view who[]{"the first value", "the second value"};
  out[0] = in[0];
  out[1] = in[1];
  for (int i = 0; i < 2; ++i)
    if (!placement_rules::rows(c, who[i], in[i])) return;
  if (o.over != axis::cp) c.begin() << "it is over " << name(o.over) << "; a shift is over cp only";
  for (int i = 0; i < 2; ++i)
    if (in[i][o.over] != V(0) && in[i][o.over] != heads_in_ring)
      c.found(o.over, who[i], in[i], "sharded along the tokens (V)", "there is nothing to shift");
  if (!c.said && (in[0].shape[0] != in[1].shape[0] || in[0].holds != in[1].holds)) {
    complaint::put_shape(c.begin() << "one value is ", in[0]);
    complaint::put_shape(c.text << " and the other ", in[1]);
    c.text << "; expected two with the same tokens, as keys and values have";
  }
  if (!c.said && o.with.ring < 2) c.begin() << "the ring has " << o.with.ring << " ranks; expected 2 or more";
  for (int i = 0; i < 2 && !c.said; ++i) {
    int& passed = out[i].shape[0].passed;
    passed = (passed + by + o.with.ring) % o.with.ring;
  }
}
/// Shifts the gradients in the opposite direction.
constexpr void give_back(const backward& b, value_pair (*back)(operand, value, axis, int)) {
  const value first = b.gradient("first"), second = b.gradient("second");
  const value_pair given = back(first, second, b.of.over, b.of.with.ring);
  b.give("x", given.first);
  b.give("y", given.second);
}
/// The name of the dim along which the backward conversion gathers or scatters.
constexpr std::string_view name_along(const backward& b) {
  return b.t.of(b.gradient("y")).shape[b.of.along].name;
}
}  // namespace detail

namespace ops {

inline constexpr op_row replicate{
    .name = "replicate",
    .ports = {out("y", "tokens width"), in("x", "tokens width")},
    .rule =
        [](complaint& c, types in, type* out, const op& o) {
          detail::convert(c, in, out, o, I, R, "invariant (I)", "there is nothing to convert");
        },
    .dual = [](backward& b) { b.give("x", rankc::all_reduce(b.gradient("y"), b.of.over)); },
    .converts = conversion::replicate};
inline constexpr op_row all_reduce{
    .name = "all_reduce",
    .ports = {out("y", "tokens width").over("x"), in("x", "tokens width")},
    .rule = detail::convert_sum,
    .dual = [](backward& b) { b.give("x", rankc::replicate(b.gradient("y"), b.of.over)); },
    .converts = conversion::all_reduce};
inline constexpr op_row all_reduce_max{.name = "all_reduce_max",
                                       .ports = {out("y", "tokens width").over("x"), in("x", "tokens width")},
                                       .rule = detail::convert_sum,
                                       .dual = stop_gradient,
                                       .kernel = "all_reduce",
                                       .converts = conversion::all_reduce_max};
inline constexpr op_row all_gather{
    .name = "all_gather",
    .ports = {out("y", "tokens width"), in("x", "tokens width")},
    .rule =
        [](complaint& c, types in, type* out, const op& o) {
          detail::convert(c, in, out, o, V(0), R, "sharded along the gathered dim (V)",
                          "there is nothing to gather");
        },
    .dual =
        [](backward& b) {
          b.give("x", rankc::reduce_scatter(b.gradient("y"), b.of.over, detail::name_along(b)));
        },
    .converts = conversion::all_gather};
inline constexpr op_row reduce_scatter{
    .name = "reduce_scatter",
    .ports = {out("y", "tokens width"), in("x", "tokens width")},
    .rule =
        [](complaint& c, types in, type* out, const op& o) {
          detail::convert(c, in, out, o, P, V(0), "a pending sum (P)", "there is nothing to reduce");
        },
    .dual =
        [](backward& b) {
          b.give("x", rankc::all_gather(b.gradient("y"), b.of.over, detail::name_along(b)));
        },
    .converts = conversion::reduce_scatter};
inline constexpr op_row all_to_all{
    .name = "all_to_all",
    .ports = {out("y", "tokens width"), scratch("scratch"), in("x", "tokens width")},
    .rule = detail::exchange,
    .dual =
        [](backward& b) {
          const std::string_view from = b.t.of(b["x"]).shape[1 - b.of.along].name;
          b.give("x", rankc::all_to_all(b.gradient("y"), b.of.over, from, b.of.with.seq, b.of.with.ring));
        },
    .converts = conversion::all_to_all};
inline constexpr op_row shift{
    .name = "shift",
    .ports = {out("first", "tokens width"), out("second", "tokens second_width"), in("x", "tokens width"),
              in("y", "tokens second_width")},
    .rule = [](complaint& c, types in, type* out, const op& o) { detail::hand_on(c, in, out, o, 1); },
    .dual = [](backward& b) { detail::give_back(b, rankc::shift_back); },
    .converts = conversion::shift,
    .family = op_family::attention,
    .of_rings = true};
inline constexpr op_row shift_back{
    .name = "shift_back",
    .ports = {out("first", "tokens width"), out("second", "tokens second_width"), in("x", "tokens width"),
              in("y", "tokens second_width")},
    .rule = [](complaint& c, types in, type* out, const op& o) { detail::hand_on(c, in, out, o, -1); },
    .dual = [](backward& b) { detail::give_back(b, rankc::shift); },
    .converts = conversion::shift_back,
    .family = op_family::attention,
    .of_rings = true};
}  // namespace ops

namespace detail {
constexpr value apply_conversion(const op_row& kind, operand x, axis over) {
  return x.v.in->apply(kind, {x.v}, x.from, {.over = over});
}
constexpr value apply_conversion(const op_row& kind, operand x, axis over, std::string_view dim_name,
                                 int seq = 0, int ring = 0) {
  trace& t = *x.v.in;
  const type& given = t.of(x.v);
  const int along = given.find(dim_name);
  if (along < 0 && !given.bad) {
    complaint c{kind.name, {}, t.backward_of.line ? t.backward_of : x.from};
    complaint::put_shape(c.begin() << "the value is ", given);
    c.text << " and has no dim '" << dim_name << "'";
    t.refuse(c);
  }
  return t.apply(kind, {x.v}, x.from, {.over = over, .along = along, .with = {.seq = seq, .ring = ring}});
}
}  // namespace detail

/// I -> R. No communication in forward; backward all-reduces the partial gradients.
/// Shapes: any.
/// Errors: RC210.
constexpr value replicate(operand x, axis over) { return detail::apply_conversion(ops::replicate, x, over); }
/// P -> I: all-reduce of a sum; no communication in backward.
/// Shapes: any.
/// Errors: RC210.
constexpr value all_reduce(operand x, axis over) {
  return detail::apply_conversion(ops::all_reduce, x, over);
}
/// P -> I: all-reduce of a maximum; no gradient flows through it.
/// Shapes: any.
/// Errors: RC210.
constexpr value all_reduce_max(operand x, axis over) {
  return detail::apply_conversion(ops::all_reduce_max, x, over);
}
/// V -> R: all-gather along a dim; backward reduce-scatters.
/// Shapes: any; the dim grows from a shard to its global size on each rank.
/// Errors: RC210; RC228 along the features.
constexpr value all_gather(operand x, axis over, std::string_view along) {
  return detail::apply_conversion(ops::all_gather, x, over, along);
}
/// P -> V: reduce-scatter along a dim; backward all-gathers.
/// Shapes: any; each rank keeps its shard of the dim.
/// Errors: RC210; RC228 along the features.
constexpr value reduce_scatter(operand x, axis over, std::string_view along) {
  return detail::apply_conversion(ops::reduce_scatter, x, over, along);
}
/// V -> V: all-to-all from shards along one dim to shards along `to`; backward exchanges back. Gathered
/// tokens are in the order of their positions, in sequences of `seq`. If `ring` is above 1, the ranks form
/// `ring` Ulysses groups, and each group exchanges separately.
/// Shapes: x (tokens, heads), sharded along one of them over cp.
/// Errors: RC210.
/// Source: DeepSpeed-Ulysses (Jacobs et al. 2023); in groups USP (Fang and Zhao 2024).
constexpr value all_to_all(operand x, axis over, std::string_view to, int seq, int ring) {
  return detail::apply_conversion(ops::all_to_all, x, over, to, seq, ring > 1 ? ring : 0);
}
/// V -> V: each rank sends two tensors to the next rank of the ring and receives those of the previous one;
/// backward shifts the gradients back.
/// Shapes: x and y with the same tokens, sharded along these over cp.
/// Errors: RC210.
constexpr value_pair shift(operand x, value y, axis over, int ring) {
  const value first =
      x.v.in->apply(ops::shift, {x.v, y}, x.from, {.over = over, .along = 0, .with = {.ring = ring}});
  return {first, result(first, 1)};
}
/// Shifts in the opposite direction: each rank receives the tensors of the next rank.
/// Shapes: as for shift.
/// Errors: RC210.
constexpr value_pair shift_back(operand x, value y, axis over, int ring) {
  const value first =
      x.v.in->apply(ops::shift_back, {x.v, y}, x.from, {.over = over, .along = 0, .with = {.ring = ring}});
  return {first, result(first, 1)};
}

}  // namespace rankc
