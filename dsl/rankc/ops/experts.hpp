// SPDX-License-Identifier: Apache-2.0
// Experts: rows of tokens are put into slots, those of one expert side by side, go through its weights, and
// are added up with their weights where they came from. Every rank has as many slots as its tokens have
// picks, whatever the router chose, so that the host knows all sizes. How many slots an expert has is known
// on the device alone, as `offsets`. Without a limit nothing is dropped; with one an expert takes so many
// picks of each group of tokens, and what is past them has no slot.
// Source: Gale et al. 2022 (MegaBlocks), for experts without a capacity; Lepikhin et al. 2020 (GShard), for
// groups of tokens.
#pragma once
#include <rankc/ops/linear.hpp>
#include <rankc/contract/kernel_scratch.hpp>

namespace rankc {

namespace detail {
/// Slots: of each token as many as it has picks.
constexpr dim slots_of(const dim& tokens, const dim& picks) {
  return {tokens.name, tokens.size * picks.size, picks.size, picks.name, tokens.order};
}
/// Whether places are those of a rank's own experts: of the same tokens each rank of ep has slots of its own,
/// and of what is made of these a part.
constexpr bool is_of_own_experts(axis a, const type& places) { return a == axis::ep && places[a] == varying; }
/// Complain of an operand that is not placed like the tokens whose it is.
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
    out[1][a] = chosen[a] == V(0) ? P : chosen[a];  // counts of tokens: a sum over those that have them
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
/// Slots that the places are of.
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
/// Places and offsets of all experts' slots to those of the rank's own, which lie in line.
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

/// One expert's matrix, of all that lie in line: (in, out), sharded along its columns alone. Experts are
/// spread over ep, and their columns over etp.
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
/// A rank of ep has its own experts' weights, and slots of all ranks' tokens that chose these.
constexpr void check_experts_of_rank(complaint& c, const type& slots, const type& w) {
  if ((w[axis::ep] == V(0)) == (slots[axis::ep] == varying)) return;
  if (slots[axis::ep] == varying)
    c.found(axis::ep, "the weight", w, "the rank's own experts, as the slots are of these",
            "shard it along its experts over ep");
  else
    c.found(axis::ep, "the value", slots, "slots of the rank's own experts, as the weight is of these",
            "exchange them first (to_experts)");
}
/// A rank of etp has columns of these, and takes the slots of all ranks that have others.
constexpr void check_columns_of_rank(complaint& c, const type& slots, const type& w) {
  if (w[axis::etp] == V(1) && slots[axis::etp] == I)
    c.found(axis::etp, "the value", slots, "slots of all ranks that have columns of the weight (R)",
            "gather them first (gather_slots)");
}
/// Offsets say which slots are an expert's: they are counted of the tokens whose the slots are.
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
/// `W_in`: the dim of an expert's matrix that the product is over.
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

// The kernels are those of grouped products, y = x w[e]^T, whose weights have output features first: an
// expert's rows here. They are told of segments of slots, s of which expert s % experts takes: one of each,
// or one of each and of each rank that sent slots.

/// places: the slot of each pick; offsets: of each expert the first of its slots and, in the second row, the
/// one after its last. Slots of an expert are in the order of tokens.
inline constexpr op_row arrange{
    .name = "arrange",
    .ports = {out("places", "tokens picks").index(), out("offsets", "2 experts").index(),
              in("chosen", "tokens picks").index()},
    .rule = detail::arrange_rule,
    .dual = stop_gradient,
    .sizes = "tokens picks experts"};

/// Of each group of `seq` tokens, of which a rank has whole ones, an expert takes the first `number` picks
/// alone, in the order of tokens: the others have no slot, and -1 for a place. What takes places passes over
/// these.
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

/// Of the slots of all experts those of the rank's own, which it has from the first on: picks of others have
/// no slot, and -1 for a place.
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

// A product over the rows of an expert's matrix, and one over its columns: each is the gradient of the
// other's input.
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

/// Where the picks of tokens go: a slot for each, and the slots of each expert.
struct arrangement {
  value places, offsets;
};

/// Of each `group` tokens in line an expert takes the first `most` picks; group = 0: all.
struct expert_limit {
  int group = 0, most = 0;
  constexpr bool any() const { return group != 0; }
};

/// Slots for the experts that tokens chose. Shapes: chosen (tokens, picks).
constexpr arrangement arrange(operand chosen, int experts, const expert_limit& by = {}) {
  trace& t = *chosen.v.in;
  const dim all{"experts", experts};
  const value places =
      by.any() ? t.apply(ops::arrange_limited, {chosen.v}, chosen.from,
                         {.with = {.seq = by.group, .most = static_cast<double>(by.most), .first = all}})
               : t.apply(ops::arrange, {chosen.v}, chosen.from, {.with = {.first = all}});
  return {places, result(places, 1)};
}
/// Of an arrangement of all experts' slots those of the rank's own experts. What is combined of these is a
/// part of a sum over ep.
/// Shapes: places (tokens, picks); offsets (2, experts).
constexpr arrangement own_slots(const arrangement& by, const char* file = __builtin_FILE(),
                                int line = __builtin_LINE()) {
  trace& t = *by.places.in;
  const value places =
      t.apply(ops::own_slots, {by.places, by.offsets}, {file, line},
              {.over = axis::ep, .with = {.first = {"experts", t.of(by.offsets).shape[1].size}}});
  return {places, result(places, 1)};
}
/// Rows of tokens in the slots of their experts; what is left of the slots holds nothing.
/// Shapes: x (tokens, width) to (tokens * picks, width).
constexpr value dispatch(operand x, const arrangement& by) {
  return x.v.in->apply(ops::dispatch, {x.v, by.places}, x.from);
}
/// Each token's slots, times their weights, added up. Shapes: slots (tokens * picks, width), weights (tokens,
/// picks).
constexpr value combine(operand slots, value weights, const arrangement& by) {
  return slots.v.in->apply(ops::combine, {slots.v, weights, by.places}, slots.from);
}
/// x w[e] and x w[e]^T, of the slots of each expert e.
/// Shapes: w (experts * in, out); up: x (slots, in) to (slots, out); down: the other way.
constexpr value expert_up(operand x, value w, const arrangement& by) {
  return w.in->apply(ops::expert_up, {x.v, w, by.offsets}, x.from);
}
constexpr value expert_down(operand x, value w, const arrangement& by) {
  return w.in->apply(ops::expert_down, {x.v, w, by.offsets}, x.from);
}

}  // namespace rankc
