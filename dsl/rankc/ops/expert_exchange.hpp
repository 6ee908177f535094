// SPDX-License-Identifier: Apache-2.0
// All-to-all of tokens between the ranks of ep: to the ranks that hold their experts, and back. A slot is one
// row that one expert processes. Each rank sends every ep rank one slab of slots. A slab has room for the
// largest number of rows that routing, or the experts' capacity, allows. So all sizes are known on the host.
// The number of rows in use is known only on the device, so the offset table is sent too. The ranks of etp
// hold column shards of the same experts: they all-gather the received slots and reduce-scatter the results.
// Source: Lepikhin et al. 2020 (GShard); Megatron-LM, the all-to-all dispatcher, for etp.
#pragma once
#include <rankc/ops/experts.hpp>

namespace rankc {

constexpr value to_experts(operand slots, value offsets, const dim& received);
constexpr value from_experts(operand received, value offsets, const dim& slots);
constexpr value gather_slots(operand received, const dim& gathered);
constexpr value scatter_slots(operand gathered, const dim& received);

namespace detail {
/// Complains if the operands of an exchange over ep are placed wrongly. A rank has either its tokens' slots
/// for all experts, or all tokens' slots for the rank's experts.
constexpr void exchange_slots(complaint& c, const type& x, const type& offsets, placement from,
                              std::string_view expected) {
  if (!placement_rules::rows(c, "the value", x)) return;
  if (x[axis::ep] != from) c.found(axis::ep, "the value", x, expected, "there is nothing to exchange");
  if (x[axis::etp] != I)
    c.found(axis::etp, "the value", x, "slots that the rank itself sends or received (I)",
            "sum them up first (scatter_slots)");
  if (offsets[axis::ep] != I)
    c.found(axis::ep, "the offset table", offsets, "that of the rank's own tokens",
            "give it that of arrange");
  for (axis a : axes) {
    if (x[a] == P)
      c.found(a, "the value", x, placement_rules::any_but_pending, placement_rules::reduce_first);
    if (x[a] == V(1)) c.found(a, "the value", x, "whole rows", "all_gather it first");
    if (a != axis::ep && (x[a] == V(0) ? offsets[a] != P : offsets[a] != x[a]))
      c.found(a, "the offset table", offsets, "that of the slots' tokens",
              "arrange the choice of the tokens that were dispatched");
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
  if (in[0][axis::ep] != I)
    c.found(axis::ep, "the offset table", in[0], "that of the rank's own tokens (I)",
            "there is nothing to exchange");
  out[0].shape[1] = dim{"segments", in[0].shape[1].size};
  out[0][axis::ep] = varying;
}
/// The all-gather of received slots over etp, or the reduce-scatter of the results.
constexpr void between_parts(complaint& c, types in, type* out, const op& o, placement from, placement to,
                             std::string_view expected, std::string_view otherwise) {
  const type& x = in[0];
  if (!placement_rules::rows(c, "the value", x)) return;
  if (x[axis::ep] != varying)
    c.found(axis::ep, "the value", x, "slots of the rank's own experts (V)",
            "exchange them first (to_experts)");
  if (x[axis::etp] != from) c.found(axis::etp, "the value", x, expected, otherwise);
  out[0] = x;
  out[0].shape[0] = o.with.first;
  out[0][axis::etp] = to;
}
constexpr void gather_slots_rule(complaint& c, types in, type* out, const op& o) {
  between_parts(c, in, out, o, I, R, "slots that the rank itself received (I)", "there is nothing to gather");
}
constexpr void scatter_slots_rule(complaint& c, types in, type* out, const op& o) {
  between_parts(c, in, out, o, P, I, "a pending sum (P)", "there is nothing to reduce");
}
constexpr void gather_offsets_rule(complaint& c, types in, type* out, const op& o) {
  out[0] = in[0];
  if (in[0][axis::ep] != varying)
    c.found(axis::ep, "the offset table", in[0], "that of the slots that the rank received (V)",
            "exchange it first (share_offsets)");
  if (in[0][axis::etp] != I)
    c.found(axis::etp, "the offset table", in[0], "that of the slots that the rank itself received (I)",
            "there is nothing to gather");
  out[0].shape[1] = o.with.second;
  out[0][axis::etp] = R;
}
/// The first dim of an operand; backward restores it.
constexpr dim rows_of(const backward& b, std::string_view port_name) { return b.t.of(b[port_name]).shape[0]; }
}  // namespace detail

namespace ops {
// The kernels also take the number of ranks and the rows of a slab.
inline constexpr op_row to_experts{
    .name = "to_experts",
    .ports = {out("received", "room*picks width"), scratch("scratch"), in("slots", "tokens*picks width"),
              in("offsets", "2 experts").index()},
    .rule = detail::to_experts_rule,
    .dual =
        [](backward& b) {
          b.give("slots",
                 rankc::from_experts(b.gradient("received"), b["offsets"], detail::rows_of(b, "slots")));
        },
    .converts = conversion::to_experts};
inline constexpr op_row from_experts{
    .name = "from_experts",
    .ports = {out("slots", "tokens*picks width"), scratch("scratch"), in("received", "room*picks width"),
              in("offsets", "2 experts").index()},
    .rule = detail::from_experts_rule,
    .dual =
        [](backward& b) {
          b.give("received",
                 rankc::to_experts(b.gradient("slots"), b["offsets"], detail::rows_of(b, "received")));
        },
    .converts = conversion::from_experts};
/// Offsets of the received slots: one segment for each (sending rank, local expert), ordered by sending rank.
inline constexpr op_row share_offsets{
    .name = "share_offsets",
    .ports = {out("shared", "2 segments").index(), scratch("scratch"), in("offsets", "2 experts").index()},
    .rule = detail::share_offsets_rule,
    .dual = stop_gradient,
    .converts = conversion::share_offsets};
/// All-gather of the etp ranks' received slots in rank order, and the reduce-scatter of partial results.
inline constexpr op_row gather_slots{
    .name = "gather_slots",
    .ports = {out("gathered", "all*picks width"), in("received", "room*picks width")},
    .rule = detail::gather_slots_rule,
    .dual =
        [](backward& b) {
          b.give("received", rankc::scatter_slots(b.gradient("gathered"), detail::rows_of(b, "received")));
        },
    .kernel = "all_gather",
    .converts = conversion::all_gather};
inline constexpr op_row scatter_slots{
    .name = "scatter_slots",
    .ports = {out("received", "room*picks width"), in("gathered", "all*picks width")},
    .rule = detail::scatter_slots_rule,
    .dual =
        [](backward& b) {
          b.give("gathered", rankc::gather_slots(b.gradient("received"), detail::rows_of(b, "gathered")));
        },
    .kernel = "reduce_scatter",
    .converts = conversion::reduce_scatter};
/// Offsets of the gathered slots: the segments of all etp ranks, in rank order.
inline constexpr op_row gather_offsets{
    .name = "gather_offsets",
    .ports = {out("gathered", "2 all").index(), scratch("scratch"), in("shared", "2 segments").index()},
    .rule = detail::gather_offsets_rule,
    .dual = stop_gradient,
    .converts = conversion::gather_offsets};
}  // namespace ops

/// The dim of the receive buffer: one slab per peer. A token's experts are distinct, so it sends a rank at
/// most min(picks, experts of the rank) rows. The capacity of experts may lower the bound. Slabs are rounded
/// up to whole multiples of `picks`.
/// `token_ranks`: the number of ranks that shard the tokens.
constexpr dim received_slots(const dim& slots, int experts, int ep, int token_ranks, const expert_limit& by) {
  const int picks = slots.unit, of_rank = experts / ep, tokens = slots.count() / token_ranks;
  const int all = tokens * (of_rank < picks ? of_rank : picks);
  const long long taken = by.any() ? 1LL * tokens / by.group * of_rank * by.most : all;
  const int rows = taken < all ? static_cast<int>(taken) : all, room = (rows + picks - 1) / picks;
  return {"room", token_ranks * ep * room * picks, picks, slots.unit_name};
}

/// Sends the slots of the rank's own tokens to the ranks of their experts.
/// Shapes: slots (tokens * picks, width), offsets (2, experts); result (ranks * room * picks, width).
/// Errors: RC210.
constexpr value to_experts(operand slots, value offsets, const dim& received) {
  return offsets.in->apply(ops::to_experts, {slots.v, offsets}, slots.from,
                           {.over = axis::ep, .with = {.first = received}});
}
/// Sends processed slots back to the ranks of their tokens, at the same places as before to_experts.
/// Shapes: received (ranks * room * picks, width), offsets (2, experts); result (tokens * picks, width).
/// Errors: RC210.
constexpr value from_experts(operand received, value offsets, const dim& slots) {
  return offsets.in->apply(ops::from_experts, {received.v, offsets}, received.from,
                           {.over = axis::ep, .with = {.first = slots}});
}
/// Exchanges the offset tables that belong to the received slots.
/// Shapes: offsets (2, experts); result (2, segments).
/// Errors: RC210.
constexpr value share_offsets(operand offsets, const dim& received) {
  return offsets.v.in->apply(ops::share_offsets, {offsets.v}, offsets.from,
                             {.over = axis::ep, .with = {.first = received}});
}

/// The dim of the received slots of all `etp` ranks.
constexpr dim gathered_slots(const dim& received, int etp) {
  return {"all_room", received.size * etp, received.unit, received.unit_name};
}

/// All-gathers the slots that the ranks of etp have received. Each rank's columns of the experts give a
/// partial result for all of them.
/// Shapes: received (ranks * room * picks, width); result (etp * ranks * room * picks, width).
/// Errors: RC210.
constexpr value gather_slots(operand received, const dim& gathered) {
  return received.v.in->apply(ops::gather_slots, {received.v}, received.from,
                              {.over = axis::etp, .with = {.first = gathered}});
}
/// Reduce-scatters the partial results to the etp ranks that received the slots.
/// Shapes: gathered (etp * ranks * room * picks, width); result (ranks * room * picks, width).
/// Errors: RC210.
constexpr value scatter_slots(operand gathered, const dim& received) {
  return gathered.v.in->apply(ops::scatter_slots, {gathered.v}, gathered.from,
                              {.over = axis::etp, .with = {.first = received}});
}
/// All-gathers the offsets of the slots that the ranks of etp have received.
/// Shapes: shared (2, segments); result (2, etp * segments).
/// Errors: RC210.
constexpr value gather_offsets(operand shared, const dim& gathered, int etp) {
  const dim segments{"all_segments", shared.v.in->of(shared.v).shape[1].size * etp};
  return shared.v.in->apply(ops::gather_offsets, {shared.v}, shared.from,
                            {.over = axis::etp, .with = {.first = gathered, .second = segments}});
}

}  // namespace rankc
