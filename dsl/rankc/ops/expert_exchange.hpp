// SPDX-License-Identifier: Apache-2.0
// Slots of tokens on their way to the ranks of ep that have their experts, and back. A rank sends each of these the slots of its
// experts, in a slab of room enough whatever the router chose: as many rows as the tokens have picks there at most, or as its
// experts take of them. So the host knows all sizes, and how many rows of a slab are slots is known on the device alone: the
// offsets go along. Source: Lepikhin et al. 2020 (GShard).
#pragma once
#include <rankc/ops/experts.hpp>

namespace rankc {

constexpr value to_experts(operand slots, value offsets, const dim& received);
constexpr value from_experts(operand received, value offsets, const dim& slots);

namespace detail {
/// What ranks of ep exchange: slots of their own tokens, of all experts, or slots of all their tokens, of their own experts.
constexpr void exchange_slots(complaint& c, const type& x, const type& offsets, placement from, std::string_view expected) {
  if (!rules::rows(c, "the value", x)) return;
  if (x[axis::ep] != from) c.found(axis::ep, "the value", x, expected, "there is nothing to exchange");
  if (offsets[axis::ep] != I) c.found(axis::ep, "the offset table", offsets, "that of the rank's own tokens", "give it that of arrange");
  for (axis a : axes) {
    if (x[a] == P) c.found(a, "the value", x, rules::any_but_pending, rules::reduce_first);
    if (x[a] == V(1)) c.found(a, "the value", x, "whole rows", "all_gather it first");
    if (a != axis::ep && (x[a] == V(0) ? offsets[a] != P : offsets[a] != x[a]))
      c.found(a, "the offset table", offsets, "that of the slots' tokens", "arrange the choice of the tokens that were dispatched");
  }
}
constexpr void to_experts_rule(complaint& c, types in, type* out, const op& o) {
  exchange_slots(c, in[0], in[1], I, "slots of the rank's own tokens (I)");
  out[0] = in[0];
  out[0].shape[0] = o.with.first;
  out[0][axis::ep] = varying;
}
constexpr void from_experts_rule(complaint& c, types in, type* out, const op& o) {
  exchange_slots(c, in[0], in[1], varying, "slots of the rank's own experts (V)");
  out[0] = in[0];
  out[0].shape[0] = o.with.first;
  out[0][axis::ep] = I;
}
constexpr void share_offsets_rule(complaint& c, types in, type* out, const op&) {
  out[0] = in[0];
  if (in[0][axis::ep] != I) c.found(axis::ep, "the offset table", in[0], "that of the rank's own tokens (I)", "there is nothing to exchange");
  out[0].shape[1] = dim{"segments", in[0].shape[1].size};
  out[0][axis::ep] = varying;
}
/// The rows of the slots that an exchange is given, which its backward gives back.
constexpr dim rows_of(const backward& b, std::string_view port_name) { return b.t.of(b[port_name]).shape[0]; }
}  // namespace detail

namespace ops {
using namespace ports;

// Kernels take, beside operands, how many ranks there are, and the rows of a slab.
inline constexpr op_row to_experts{
    .name = "to_experts",
    .ports = {out("received", "room*picks width"), scratch("scratch"), in("slots", "tokens*picks width"), in("offsets", "2 experts").index()},
    .rule = detail::to_experts_rule,
    .dual = [](backward& b) {
      b.give("slots", rankc::from_experts(b.gradient("received"), b["offsets"], detail::rows_of(b, "slots")));
    },
    .flops = no_flops,
    .host = {"to_experts", ""},
    .cuda = {"to_experts", ""},
    .converts = conversion::to_experts};
inline constexpr op_row from_experts{
    .name = "from_experts",
    .ports = {out("slots", "tokens*picks width"), scratch("scratch"), in("received", "room*picks width"), in("offsets", "2 experts").index()},
    .rule = detail::from_experts_rule,
    .dual = [](backward& b) {
      b.give("received", rankc::to_experts(b.gradient("slots"), b["offsets"], detail::rows_of(b, "received")));
    },
    .flops = no_flops,
    .host = {"from_experts", ""},
    .cuda = {"from_experts", ""},
    .converts = conversion::from_experts};
/// Segments of what a rank has received: of the first of its peers one for each of its own experts, and so on.
inline constexpr op_row share_offsets{
    .name = "share_offsets",
    .ports = {out("shared", "2 segments").index(), scratch("scratch"), in("offsets", "2 experts").index()},
    .rule = detail::share_offsets_rule,
    .dual = stop_gradient,
    .flops = no_flops,
    .host = {"share_offsets", ""},
    .cuda = {"share_offsets", ""},
    .converts = conversion::share_offsets};
}  // namespace ops

/// Rows that a rank receives from its peers, in slabs of room for the picks of so many tokens each. A token's picks are different
/// experts, so that of its picks a rank gets no more than it has experts, and no more than these take.
/// `token_ranks`: ranks that share out the tokens.
constexpr dim received_slots(const dim& slots, int experts, int ep, int token_ranks, const expert_limit& by) {
  const int picks = slots.unit, of_rank = experts / ep, tokens = slots.count() / token_ranks;
  const int all = tokens * (of_rank < picks ? of_rank : picks);
  const long long taken = by.any() ? 1LL * tokens / by.group * of_rank * by.most : all;
  const int rows = taken < all ? static_cast<int>(taken) : all, room = (rows + picks - 1) / picks;
  return {"room", token_ranks * ep * room * picks, picks, slots.unit_name};
}

/// Slots of the rank's own tokens to those of its own experts; and back, where they lie as they did.
/// Shapes: slots (tokens * picks, width), offsets (2, experts); received (ranks * room * picks, width).
constexpr value to_experts(operand slots, value offsets, const dim& received) {
  return offsets.in->apply(ops::to_experts, {slots.v, offsets}, slots.from, {.over = axis::ep, .with = {.first = received}});
}
constexpr value from_experts(operand received, value offsets, const dim& slots) {
  return offsets.in->apply(ops::from_experts, {received.v, offsets}, received.from, {.over = axis::ep, .with = {.first = slots}});
}
/// The offsets of the slots that a rank receives.
constexpr value share_offsets(operand offsets, const dim& received) {
  return offsets.v.in->apply(ops::share_offsets, {offsets.v}, offsets.from, {.over = axis::ep, .with = {.first = received}});
}

}  // namespace rankc
