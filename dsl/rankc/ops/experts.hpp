// SPDX-License-Identifier: Apache-2.0
// Experts of a mixture. Token rows are copied to slots, sorted by expert; the experts' matrices are applied
// as grouped GEMMs; the results are added up at their tokens with the routing weights. A rank has tokens *
// picks slots, whatever the router chose (`picks` is the router's top-k), so all sizes are known on the host.
// The number of slots of each expert is known only on the device, in `offsets`. Without a capacity no choice
// is dropped. With one, an expert takes a limited number of choices from each group of tokens; the rest get
// no slot.
// Source: Gale et al. 2022 (MegaBlocks), without a capacity; Lepikhin et al. 2020 (GShard), for groups of
// tokens.
#pragma once
#include <rankc/ops/linear.hpp>
#include <rankc/contract/kernel_scratch.hpp>

namespace rankc {

namespace detail {
/// The dim of the slots: `picks` for each token.
constexpr dim slots_of(const dim& tokens, const dim& picks) {
  return {tokens.name, tokens.size * picks.size, picks.size, picks.name, tokens.order};
}
/// True if `places` covers only the rank's own experts. The ep ranks then have the same tokens and different
/// slots, and their results are partial sums.
constexpr bool is_of_own_experts(axis a, const type& places) { return a == axis::ep && places[a] == varying; }
/// Complains if `x` is not placed like its tokens.
constexpr void like_tokens(complaint& c, axis a, std::string_view who, const type& x, const type& tokens) {
  if (is_of_own_experts(a, x)) {
    if (tokens[a] != R)
      c.found(a, "the value", tokens, "the same on every rank of ep, each of which makes a part (R)",
              "replicate it first");
  } else if (x[a] != tokens[a])
    c.found(a, who, x, "placed as the tokens are",
            "route tokens that are placed like those which go to experts");
}
constexpr void arrange_rule(complaint& c, types in, type* out, const op& o) {
  const type& chosen = in[0];
  out[1].shape[1] = o.with.first;
  for (axis a : axes) {
    if (chosen[a].k == placement::P || chosen[a] == V(1))
      c.found(a, "the choice", chosen, "whole rows", placement_rules::reduce_first);
    out[0][a] = chosen[a];
    out[1][a] = chosen[a] == V(0) ? P : chosen[a];  // token counts are partial sums where tokens are sharded
  }
}
constexpr void limited_rule(complaint& c, types in, type* out, const op& o) {
  arrange_rule(c, in, out, o);
  if (!c.said && (o.with.seq < 1 || !(o.with.most >= 1 && o.with.most <= o.with.seq)))
    c.begin() << "experts take " << o.with.most << " picks of each group of " << o.with.seq
              << " tokens; expected at least 1, and at most one of each token";
}
constexpr void dispatch_rule(complaint& c, types in, type* out, const op&) {
  const type &x = in[0], &places = in[1];
  if (!placement_rules::rows(c, "the value", x)) return;
  out[0].shape[0] = slots_of(x.shape[0], places.shape[1]);
  for (axis a : axes) {
    if (x[a] == P)
      c.found(a, "the value", x, placement_rules::any_but_pending, placement_rules::reduce_first);
    if (x[a] == V(1)) c.found(a, "the value", x, "whole rows", "all_gather it first");
    like_tokens(c, a, "the choice", places, x);
    out[0][a] = is_of_own_experts(a, places) ? varying : x[a];
  }
}
constexpr void collect_rule(complaint& c, types in, type* out, const op&) {
  for (axis a : axes) {
    out[0][a] = placement_rules::linear_in(c, a, in[0], in.subspan(1));
    if (is_of_own_experts(a, in[1])) out[0][a] = P;
  }
}
/// Complains if the slots are not those that `places` refers to.
constexpr void like_places(complaint& c, axis a, const type& slots, const type& places) {
  if (is_of_own_experts(a, places) && slots[a] != varying)
    c.found(a, "the value", slots, "slots of the rank's own experts (V)", "dispatch tokens by these places");
}
constexpr void combine_rule(complaint& c, types in, type* out, const op&) {
  const type &slots = in[0], &weights = in[1], &places = in[2];
  if (!placement_rules::rows(c, "the value", slots)) return;
  for (axis a : axes) {
    out[0][a] = is_of_own_experts(a, places) ? P : product_over(c, a, slots, weights);
    like_tokens(c, a, "the choice", places, weights);
    like_places(c, a, slots, places);
  }
}
constexpr void combine_gradient(complaint& c, types in, type* out, const op&) {
  const type &g = in[0], &slots = in[1];
  out[0].shape[0] = slots.shape[0];
  for (axis a : axes) {
    if (is_of_own_experts(a, in[3])) {
      if (g[a] != R) c.found(a, "the gradient", g, "that of a part (R)", "check the op's dual");
      out[0][a] = varying;
      out[1][a] = P;
      continue;
    }
    out[0][a] = placement_rules::linear_in(c, a, g, in.subspan(2));
    out[1][a] = product_over(c, a, g, slots);
  }
}
/// Restricts places and offsets to the slots of the rank's own experts, which are contiguous.
constexpr void own_slots_rule(complaint& c, types in, type* out, const op& o) {
  const type &places = in[0], &offsets = in[1];
  out[1].shape[1] = o.with.first;
  for (axis a : axes) {
    if (places[a] == V(0) ? offsets[a] != P : offsets[a] != places[a])
      c.found(a, "the offset table", offsets, "that of the places' tokens", "give it that of arrange");
    if (a == axis::ep && places[a] != R)
      c.found(a, "the table of places", places, "that of tokens that every rank of ep has (R)",
              "arrange the choice of replicated logits");
    out[0][a] = places[a];
    out[1][a] = offsets[a];
  }
  out[0][axis::ep] = varying;
  out[1][axis::ep] = V(1);
}

/// The type of one expert's matrix (in, out). Experts may be sharded over ep, their columns over etp or tp.
constexpr type matrix_of_one(complaint& c, const type& w) {
  type one = w;
  one.shape[0] = dim{w.shape[0].unit_name, w.shape[0].unit};
  one[axis::ep] = I;
  for (axis a : axes)
    if (w[a] == V(0) && a != axis::ep)
      c.found(a, "the weight", w, "all experts on each rank, or their columns sharded",
              "shard it along its columns");
  return one;
}
/// Complains if only one of slots and weights is of the rank's own experts.
constexpr void check_experts_of_rank(complaint& c, const type& slots, const type& w) {
  if ((w[axis::ep] == V(0)) == (slots[axis::ep] == varying)) return;
  if (slots[axis::ep] == varying)
    c.found(axis::ep, "the weight", w, "the rank's own experts, as the slots are of these",
            "shard it along its experts over ep");
  else
    c.found(axis::ep, "the value", slots, "slots of the rank's own experts, as the weight is of these",
            "exchange them first (to_experts)");
}
/// Complains if the weights' columns are sharded over etp and the slots were not gathered over etp.
constexpr void check_columns_of_rank(complaint& c, const type& slots, const type& w) {
  if (w[axis::etp] == V(1) && slots[axis::etp] == I)
    c.found(axis::etp, "the value", slots, "slots of all ranks that have columns of the weight (R)",
            "gather them first (gather_slots)");
}
/// Complains if the offsets do not belong to the slots: both must come from the same tokens.
constexpr void check_offsets(complaint& c, const type& slots, const type& offsets) {
  for (axis a : axes) {
    if (a == axis::ep) {
      if (slots[a].k != offsets[a].k)
        c.found(a, "the offset table", offsets, "that of the slots", "exchange both, or neither");
      continue;
    }
    if (a == axis::etp) {
      if ((slots[a] == I) != (offsets[a] == I))
        c.found(a, "the offset table", offsets, "that of the slots", "gather both, or neither");
      continue;
    }
    const bool of_own_tokens = slots[a] == V(0);
    if (of_own_tokens ? offsets[a] != P : (offsets[a].k == placement::V || offsets[a] == P))
      c.found(a, "the offset table", offsets, "that of the slots' tokens",
              "arrange the choice of the tokens that were dispatched");
  }
}
/// `W_in`: the dim of an expert's matrix that is contracted.
template <int W_in>
constexpr void expert_rule(complaint& c, types in, type* out, const op&) {
  const type one = matrix_of_one(c, in[1]);
  check_experts_of_rank(c, in[0], in[1]);
  check_columns_of_rank(c, in[0], in[1]);
  out[0] = placement_rules::linear(c, in[0], one, W_in);
  check_offsets(c, in[0], in[2]);
}
constexpr void expert_up_dual(backward&);
constexpr void expert_down_dual(backward&);
}  // namespace detail

namespace ops {

constexpr double expert_flops(const op_sizes& s) { return 2 * s("tokens") * s("picks") * s("in") * s("out"); }

// The kernels are grouped GEMMs y = x w[e]^T. They expect output features first in w, which here are the rows
// of an expert's matrix. They read a list of segments of slots; segment s uses expert s % experts. There is
// one segment for each expert, or one for each sending rank and expert.

/// places: the slot of each choice. offsets: the first slot of each expert and, in the second row, the end of
/// its slots. The slots of an expert are in token order.
inline constexpr op_row arrange{
    .name = "arrange",
    .ports = {out("places", "tokens picks").index(), out("offsets", "2 experts").index(),
              in("chosen", "tokens picks").index()},
    .rule = detail::arrange_rule,
    .dual = stop_gradient,
    .sizes = "tokens picks experts"};

/// As arrange, with a capacity: in each group of `seq` tokens an expert takes the first `number` choices in
/// token order. The other choices get place -1, which readers of places skip. A rank has whole groups.
constexpr std::size_t scratch_of_counts(const op_sizes& s, const kernel_setting&) {
  return runtime::limited_arrangement_scratch(static_cast<std::size_t>(s("rows")),
                                              static_cast<std::size_t>(s("experts")));
}
inline constexpr op_row arrange_limited{
    .name = "arrange_limited",
    .ports = {out("places", "tokens picks").index(), out("offsets", "2 experts").index(), scratch("scratch"),
              in("chosen", "tokens picks").index()},
    .rule = detail::limited_rule,
    .dual = stop_gradient,
    .sizes = "rows seq picks experts number",
    .host = {.scratch = scratch_of_counts},
    .cuda = {.scratch = scratch_of_counts},
    .number = {"most", &attributes::most},
    .of_groups = true};

/// The places and offsets of the rank's own experts, renumbered from slot 0. Choices of other experts get
/// place -1.
inline constexpr op_row own_slots{
    .name = "own_slots",
    .ports = {out("own_places", "tokens picks").index(), out("own_offsets", "2 own@first").index(),
              in("places", "tokens picks").index(), in("offsets", "2 experts").index()},
    .rule = detail::own_slots_rule,
    .dual = stop_gradient,
    .sizes = "tokens picks own first experts"};

inline constexpr op_row collect{.name = "collect",
                                .ports = {out("y", "tokens width"), in("slots", "tokens*picks width"),
                                          in("places", "tokens picks").index()},
                                .rule = detail::collect_rule,
                                .sizes = "tokens picks width"};
inline constexpr op_row dispatch{
    .name = "dispatch",
    .ports = {out("slots", "tokens*picks width"), in("x", "tokens width"),
              in("places", "tokens picks").index()},
    .rule = detail::dispatch_rule,
    .dual = [](backward& b) { b.give("x", b.apply(collect, {b.gradient("slots"), b["places"]})); },
    .sizes = "tokens picks width"};

inline constexpr op_row combine_grad{
    .name = "combine_grad",
    .ports = {out("dslots", "tokens*picks width"), out("dweights", "tokens picks").wide(),
              in("dy", "tokens width"), in("slots", "tokens*picks width"),
              in("weights", "tokens picks").wide(), in("places", "tokens picks").index()},
    .rule = detail::combine_gradient,
    .sizes = "tokens picks width"};
inline constexpr op_row combine{
    .name = "combine",
    .ports = {out("y", "tokens width"), in("slots", "tokens*picks width"),
              in("weights", "tokens picks").wide(), in("places", "tokens picks").index()},
    .rule = detail::combine_rule,
    .dual =
        [](backward& b) {
          const value dslots =
              b.apply(combine_grad, {b.gradient("y"), b["slots"], b["weights"], b["places"]});
          b.give("slots", dslots);
          b.give("weights", result(dslots, 1));
        },
    .sizes = "tokens picks width"};

inline constexpr op_row expert_dw{.name = "expert_dw",
                                  .ports = {sum("dw", "experts*in out"), in("x", "tokens*picks in"),
                                            in("y", "tokens*picks out"), in("offsets", "2 segments").index()},
                                  .rule =
                                      [](complaint& c, types in, type* out, const op&) {
                                        for (axis a : axes)
                                          out[0][a] = a == axis::ep && in[0][a] == varying
                                                          ? V(0)
                                                          : placement_rules::outer(c, in[1], in[0], a);
                                        detail::check_offsets(c, in[1], in[2]);
                                      },
                                  .flops = expert_flops,
                                  .kernel = "grouped_linear_dw",
                                  .sizes = "tokens*picks out in segments experts"};

// GEMMs over the rows of an expert's matrix (up) and over its columns (down). Each is the input gradient of
// the other.
inline constexpr op_row expert_up{
    .name = "expert_up",
    .ports = {out("y", "tokens*picks out"), in("x", "tokens*picks in"), parameter("w", "experts*in out"),
              in("offsets", "2 segments").index()},
    .rule = detail::expert_rule<0>,
    .dual = detail::expert_up_dual,
    .flops = expert_flops,
    .kernel = "grouped_linear_dx",
    .sizes = "tokens*picks out in segments experts"};
inline constexpr op_row expert_down{
    .name = "expert_down",
    .ports = {out("y", "tokens*picks in"), in("x", "tokens*picks out"), parameter("w", "experts*in out"),
              in("offsets", "2 segments").index()},
    .rule = detail::expert_rule<1>,
    .dual = detail::expert_down_dual,
    .flops = expert_flops,
    .kernel = "grouped_linear",
    .sizes = "tokens*picks out in segments experts"};

}  // namespace ops

namespace detail {
constexpr void expert_up_dual(backward& b) {
  b.give("x", b.apply(ops::expert_down, {b.gradient("y"), b["w"], b["offsets"]}));
  b.contribute({"w"}, ops::expert_dw, {b["x"], b.gradient("y"), b["offsets"]});
}
constexpr void expert_down_dual(backward& b) {
  b.give("x", b.apply(ops::expert_up, {b.gradient("y"), b["w"], b["offsets"]}));
  b.contribute({"w"}, ops::expert_dw, {b.gradient("y"), b["x"], b["offsets"]});
}
}  // namespace detail

/// The slot of each choice, and the range of slots of each expert.
struct arrangement {
  value places, offsets;
};

/// Capacity: in each group of `group` consecutive tokens an expert takes the first `most` choices. group = 0:
/// no limit.
struct expert_limit {
  int group = 0, most = 0;
  constexpr bool any() const { return group != 0; }
};

/// Assigns a slot to each choice, sorted by expert.
/// Shapes: chosen (tokens, picks); places (tokens, picks), offsets (2, experts).
/// Errors: RC210; RC258 if a group of the limit is not whole on one rank.
constexpr arrangement arrange(operand chosen, int experts, const expert_limit& by = {}) {
  trace& t = *chosen.v.in;
  const dim all{"experts", experts};
  const value places =
      by.any() ? t.apply(ops::arrange_limited, {chosen.v}, chosen.from,
                         {.with = {.seq = by.group, .most = static_cast<double>(by.most), .first = all}})
               : t.apply(ops::arrange, {chosen.v}, chosen.from, {.with = {.first = all}});
  return {places, result(places, 1)};
}
/// Restricts an arrangement of all experts to the rank's own. Combining these slots gives a partial sum over
/// ep.
/// Shapes: places (tokens, picks); offsets (2, experts).
/// Errors: RC210.
constexpr arrangement own_slots(const arrangement& by, const char* file = __builtin_FILE(),
                                int line = __builtin_LINE()) {
  trace& t = *by.places.in;
  const value places =
      t.apply(ops::own_slots, {by.places, by.offsets}, {file, line},
              {.over = axis::ep, .with = {.first = {"experts", t.of(by.offsets).shape[1].size}}});
  return {places, result(places, 1)};
}
/// Copies token rows to the slots of their experts. Slots without a token are not written.
/// Shapes: x (tokens, width); result (tokens * picks, width).
/// Errors: RC210.
constexpr value dispatch(operand x, const arrangement& by) {
  return x.v.in->apply(ops::dispatch, {x.v, by.places}, x.from);
}
/// The weighted sum of each token's slots.
/// Shapes: slots (tokens * picks, width), weights (tokens, picks); result (tokens, width).
/// Errors: RC210.
constexpr value combine(operand slots, value weights, const arrangement& by) {
  return slots.v.in->apply(ops::combine, {slots.v, weights, by.places}, slots.from);
}
/// x w[e] for the slots of each expert e.
/// Shapes: x (slots, in), w (experts * in, out); result (slots, out).
/// Errors: RC210, RC226.
constexpr value expert_up(operand x, value w, const arrangement& by) {
  return w.in->apply(ops::expert_up, {x.v, w, by.offsets}, x.from);
}
/// x w[e]^T for the slots of each expert e.
/// Shapes: x (slots, out), w (experts * in, out); result (slots, in).
/// Errors: RC210, RC226.
constexpr value expert_down(operand x, value w, const arrangement& by) {
  return w.in->apply(ops::expert_down, {x.v, w, by.offsets}, x.from);
}

}  // namespace rankc
