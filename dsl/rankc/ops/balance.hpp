// SPDX-License-Identifier: Apache-2.0
// Router statistics of a microbatch, and the losses computed from them. The statistics are how often each
// expert was chosen, the sum of its probabilities, and the sum of squared log-sum-exps of the logits. They
// are passed from layer to layer with the residual stream, so the last layer has the sums of all layers. Only
// the choice counts are all-reduced before the loss is computed. The loss is linear in the other sums, so
// each rank uses its own.
// Source: Shazeer et al. 2017; Fedus et al. 2022 (balance); Zoph et al. 2022 (ST-MoE, logits).
#pragma once
#include <rankc/ops/conversions.hpp>
#include <rankc/ops/router.hpp>
#include <rankc/contract/kernel_scratch.hpp>
#include <rankc/contract/router.hpp>

namespace rankc {

/// Coefficients and scope of the router losses, which are added to the model's loss.
///   balance     coefficient of E sum_e f_e P_e, with E experts: f_e is the number of times that expert e was
///               chosen per token, P_e its mean probability
///   all_layers  f and P are means over tokens and layers; balanced routing gives top_k
///   each_layer  the sum over layers of E / top_k sum_e f_e P_e; balanced routing gives 1 for each layer
///   z           coefficient of the mean over tokens of log(sum(exp(logits)))^2, summed over layers; the
///               number of tokens is the number of choices / top_k
///   local       the balance loss of each data-parallel rank uses that rank's tokens only
/// Source: all_layers: transformers, load_balancing_loss_func; each_layer: Megatron-LM, aux_loss.
struct router_losses {
  double balance = 0, z = 0;
  enum scope : unsigned char { all_layers, each_layer } over = all_layers;
  bool local = false;
  constexpr bool any() const { return balance != 0 || z != 0; }
};

/// Behaviour if a token's expert is at capacity: drop the choice and count it, or fail the step before it is
/// applied.
enum class overflow : unsigned char { drop, fail };

/// The routers of a model: the number of MoE layers, the experts of each, and the experts that each token
/// chooses (`picks`, top-k). `limited`: experts have a capacity, so dropped choices are counted. `counted`:
/// choices are counted even if no loss and no capacity needs them.
struct model_routers {
  int layers = 0, experts = 0, picks = 0;
  router_losses losses{};
  bool limited = false;
  rankc::overflow overflow = rankc::overflow::drop;
  bool counted = false;
  constexpr bool fails() const { return limited && overflow == rankc::overflow::fail; }
  constexpr bool any() const { return layers > 0 && (losses.any() || limited || counted); }
};

/// Layout of the router statistics. A row belongs to one group of tokens: a microbatch, or one data-parallel
/// rank's part of it. For each layer a row has three vectors of one number per expert: the choice counts, the
/// sums of probabilities, and a vector whose first number is the sum of squared log-sum-exps. If experts have
/// a capacity, its second number is the count of dropped choices.
struct router_statistics {
  static constexpr int kinds = runtime::kinds_of_statistics;
  model_routers of{};
  dim groups{};
  int tokens = 0;  // tokens in one group
  constexpr bool any() const { return of.any(); }
  constexpr dim of_layer() const { return {"router_sums", kinds * of.experts, of.experts, "experts"}; }
  constexpr dim of_layers() const {
    return {"router_sums_of_layers", of.layers * kinds * of.experts, of.experts, "experts"};
  }
};

namespace detail {
constexpr std::string_view microbatches = "microbatches", replicas = "replicas";  // the two kinds of groups

/// Placement of a sum over tokens. It is a pending sum (P) where tokens are sharded. It is sharded (V) over
/// data-parallel axes if each replica has its own groups.
constexpr placement sum_of_tokens(axis a, const type& tokens, const dim& groups) {
  if (tokens[a] != V(0)) return tokens[a];
  return row(a).shares == part::sequences && groups.name == replicas ? V(0) : P;
}
constexpr void statistics_rule(complaint& c, types in, type* out, const op& o) {
  const type &logits = in[0], &chosen = in[1];
  if (!placement_rules::rows(c, "the value", logits)) return;
  out[0].shape[0] = o.with.whole;
  out[0].shape[1] = o.with.first;
  for (axis a : axes) {
    if (logits[a] == P)
      c.found(a, "the value", logits, placement_rules::any_but_pending, placement_rules::reduce_first);
    if (logits[a] == V(1))
      c.found(a, "the value", logits, "the logits of all experts on each rank", "all_gather it first");
    if (logits[a] == R)
      c.found(a, "the value", logits, "each token's logits on one rank, or invariant (I)",
              "take the statistics before enter_tp");
    if (chosen[a] != logits[a] && !(chosen[a] == R && logits[a] == I))
      c.found(a, "the choice", chosen, "that of the logits' tokens", "route the same logits");
    out[0][a] = sum_of_tokens(a, logits, o.with.whole);
  }
}
constexpr void statistics_gradient(complaint& c, types in, type* out, const op&) {
  const type &g = in[0], &logits = in[1];
  for (axis a : axes) {
    if (g[a] != cotangent(logits[a] == V(0) && g[a] != V(0) ? P : logits[a]))
      c.found(a, "the gradient", g, "what belongs to the logits' placement", "check the op's dual");
    out[0][a] = cotangent(logits[a]);
  }
}
/// The drop count is computed from the places. Every tp rank that has all tokens counts all drops (I).
constexpr void dropped_rule(complaint& c, types in, type* out, const op& o) {
  const type& places = in[0];
  out[0].shape[0] = o.with.whole;
  out[0].shape[1] = o.with.first;
  for (axis a : axes) {
    if (places[a].k == placement::P || places[a] == V(1))
      c.found(a, "the places", places, "those of whole tokens", placement_rules::reduce_first);
    out[0][a] = places[a] == R ? I : sum_of_tokens(a, places, o.with.whole);
  }
  if (!c.said && o.with.first.unit < 2)
    c.begin() << "they are counted behind the sum of squares, and there is " << o.with.first.unit
              << " expert; expected 2 or more";
}
constexpr void push_rule(complaint& c, types in, type* out, const op&) {
  out[0].shape[0] = in[0].shape[0];
  out[0].shape[1] = in[0].shape[1];
  for (axis a : axes) {
    if (in[1][a] != in[0][a])
      c.found(a, "the layer's part", in[1], "the placement of what came before",
              "take all statistics of tokens that lie alike");
    out[0][a] = in[0][a];
  }
  if (!c.said && in[1].shape[1].size > in[0].shape[1].size) {
    complaint::put_shape(c.begin() << "the layer's part is ", in[1]);
    complaint::put_shape(c.text << " and what it is put to ", in[0]);
    c.text << "; expected room for it";
  }
}
/// Splits dy into the gradients of `s` and of `own`.
constexpr void push_gradient(complaint&, types in, type* out, const op& o) {
  out[0].shape[0] = out[1].shape[0] = in[0].shape[0];
  out[0].shape[1] = in[0].shape[1];
  out[1].shape[1] = o.with.first;
  for (axis a : axes) out[0][a] = out[1][a] = in[0][a];
}
/// A loss that is linear in the rank's sums `s`. The choice counts of the batch must be reduced already.
constexpr void loss_of_statistics(complaint& c, types in, type* out, const op&) {
  const type& s = in[in.size() - 1];
  for (axis a : axes) {
    out[0][a] = s[a] == V(0) ? P : s[a];
    for (const type& whole : in.first(in.size() - 1))
      if (whole[a] == P)
        c.found(a, "the number of choices", whole, placement_rules::any_but_pending,
                "take the sum over the batch first (all_reduce_batch)");
  }
}
/// All ranks with tokens of the batch have the same counts. Each computes the gradient of the sums that it
/// added.
constexpr void gradient_of_balance(complaint&, types in, type* out, const op&) {
  out[0] = in[0];
  for (axis a : axes)
    if (in[0][a] == I && (row(a).shares == part::sequences || row(a).shares == part::positions))
      out[0][a] = R;
}
constexpr void batch_rule(complaint& c, types in, type* out, const op&) {
  out[0] = in[0];
  for (axis a : axes) {
    if (row(a).shares != part::sequences && row(a).shares != part::positions) continue;
    if (in[0][a] != P) c.found(a, "the value", in[0], "a pending sum (P)", "there is nothing to reduce");
    out[0][a] = I;
  }
}
}  // namespace detail

namespace ops {

constexpr std::size_t scratch_of_host_sums(const op_sizes& s, const kernel_setting&) {
  return host::statistics_scratch(static_cast<std::size_t>(s("experts")));
}
constexpr std::size_t scratch_of_blocks(const op_sizes& s, const kernel_setting&) {
  return cuda::statistics_scratch(static_cast<std::size_t>(s("experts")));
}

constexpr op_row statistics_gradient(std::string_view name) {
  return {.name = name,
          .ports = {out("dlogits", "tokens experts"), in("down", "groups kinds*experts").wide(),
                    in("logits", "tokens experts")},
          .rule = detail::statistics_gradient,
          .sizes = "tokens experts"};
}
template <const op_row& Gradient>
constexpr op_row statistics_of_logits(std::string_view name) {
  return {.name = name,
          .ports = {out("own", "groups kinds*experts").wide(), scratch("scratch"),
                    in("logits", "tokens experts"), in("chosen", "tokens picks").index()},
          .rule = detail::statistics_rule,
          .dual = [](backward& b) { b.give("logits", b.apply(Gradient, {b.gradient("own"), b["logits"]})); },
          .sizes = "tokens experts picks",
          .host = {.scratch = scratch_of_host_sums},
          .cuda = {.scratch = scratch_of_blocks}};
}
inline constexpr op_row softmax_statistics_grad = statistics_gradient("softmax_statistics_grad"),
                        sigmoid_statistics_grad = statistics_gradient("sigmoid_statistics_grad"),
                        softmax_statistics =
                            statistics_of_logits<softmax_statistics_grad>("softmax_statistics"),
                        sigmoid_statistics =
                            statistics_of_logits<sigmoid_statistics_grad>("sigmoid_statistics");

/// The number of choices without a place, at the index where the logits' statistics have 0.
inline constexpr op_row dropped_statistics{
    .name = "dropped_statistics",
    .ports = {out("own", "groups kinds*experts").wide(), in("places", "tokens picks").index()},
    .rule = detail::dropped_rule,
    .dual = stop_gradient,
    .sizes = "tokens picks experts"};

/// Appends one layer's statistics: shifts `s` to the front by the size of `own`, then writes `own` at the
/// end.
inline constexpr op_row push_grad{
    .name = "push_grad",
    .ports = {out("ds", "groups before").wide(), out("down", "groups own").wide(),
              in("dy", "groups after").wide()},
    .rule = detail::push_gradient,
    .sizes = "after own"};
inline constexpr op_row push{.name = "push",
                             .ports = {out("y", "groups after").wide(), in("s", "groups before").wide(),
                                       in("own", "groups own").wide()},
                             .rule = detail::push_rule,
                             .dual =
                                 [](backward& b) {
                                   const value ds = b.t.apply(push_grad, {b.gradient("y")}, {},
                                                              {.with = {.first = b.t.of(b["own"]).shape[1]}});
                                   b.give("s", ds);
                                   b.give("own", result(ds, 1));
                                 },
                             .sizes = "after own"};

/// All-reduce over all ranks that have tokens of the batch. Without a gradient: only choice counts are read
/// from the result.
inline constexpr op_row all_reduce_batch{
    .name = "all_reduce_batch",
    .ports = {out("y", "tokens width").over("x"), in("x", "tokens width")},
    .rule = detail::batch_rule,
    .dual = stop_gradient,  // choice counts have no gradient
    .kernel = "all_reduce",
    .converts = conversion::all_reduce_batch};

constexpr op_row loss_gradient(std::string_view name, number_attribute number = {}) {
  return {.name = name,
          .ports = {out("ds", "groups kinds*experts").wide(), in("whole", "groups kinds*experts").wide()},
          .rule = detail::gradient_of_balance,
          .sizes = "kinds experts number",
          .number = number};
}
/// A loss of statistics: `whole` has the choice counts of the batch, `s` the sums of the rank's tokens.
template <const op_row& Gradient>
constexpr op_row loss_of_statistics(std::string_view name) {
  return {.name = name,
          .ports = {sum("loss", ""), in("whole", "groups kinds*experts").wide(),
                    in("s", "groups kinds*experts").wide()},
          .rule = detail::loss_of_statistics,
          .dual = [](backward& b) { b.give("s", b.apply(Gradient, {b["whole"]})); },
          .sizes = "kinds experts number",
          .number = Gradient.number};
}
inline constexpr op_row
    balance_loss_grad = loss_gradient("balance_loss_grad"),
    layer_balance_loss_grad = loss_gradient("layer_balance_loss_grad"),
    z_loss_grad = loss_gradient("z_loss_grad"),
    // (sum of squares) * (dropped choices) * exp(log_scale): infinite if any choice was dropped.
    overflow_loss_grad = loss_gradient("overflow_loss_grad", {"log_scale", &attributes::log_scale}),
    balance_loss = loss_of_statistics<balance_loss_grad>("balance_loss"),
    layer_balance_loss = loss_of_statistics<layer_balance_loss_grad>("layer_balance_loss"),
    z_loss = loss_of_statistics<z_loss_grad>("z_loss"),
    overflow_loss = loss_of_statistics<overflow_loss_grad>("overflow_loss");

}  // namespace ops

/// All-reduce over all ranks that have tokens of the batch. No gradient flows through it.
/// Shapes: x (rows, width), a pending sum over the data-parallel and cp axes.
/// Errors: RC210.
constexpr value all_reduce_batch(operand x) { return x.v.in->apply(ops::all_reduce_batch, {x.v}, x.from); }

namespace detail {
/// The weight of one group in the step's loss: the group's tokens / the step's tokens.
constexpr double share_of_group(const router_statistics& s, double loss_scale) {
  return s.tokens * loss_scale;
}
}  // namespace detail

/// The name of the value that carries router statistics from layer to layer.
inline constexpr std::string_view carried_statistics = "statistics";

/// The router statistics of the layers before and of this layer so far.
constexpr value handed_statistics(trace& t) { return {&t, t.find_carried(carried_statistics)->result}; }

/// Adds the statistics of one layer's router to those of the layers before. Takes the logits before they
/// enter a tensor-parallel region, and the experts chosen for the same tokens. `places` is given if experts
/// have a capacity, to count dropped choices.
/// Shapes: logits (tokens, experts); chosen and places (tokens, picks).
/// Errors: RC210, RC256.
constexpr void keep_statistics(operand logits, value chosen, const router_rule& by,
                               const router_statistics& s, value places = {}) {
  if (!s.any()) return;
  trace& t = *logits.v.in;
  const op_row& kind = by.scores == router_rule::softmax ? ops::softmax_statistics : ops::sigmoid_statistics;
  const attributes with{.seq = s.tokens, .first = s.of_layer(), .whole = s.groups};
  value own = t.apply(kind, {logits.v, chosen}, logits.from, {.with = with});
  if (places.in) own = own + t.apply(ops::dropped_statistics, {places}, logits.from, {.with = with});
  const value all = t.apply(ops::push, {handed_statistics(t), own}, logits.from);
  t.find_carried(carried_statistics)->result = all.id;
}

/// Adds the losses of all routers of a microbatch; the last layer calls it. With overflow::fail, a dropped
/// choice adds an infinite loss, so the optimizer does not apply the step.
/// Units: loss_scale is 1 / tokens of a step.
constexpr void add_router_losses(trace& t, const router_statistics& s, bool sequence_parallel,
                                 double loss_scale) {
  if (!s.any()) return;
  constexpr double log_of_infinity = 1000;  // exp of it overflows f64
  const router_losses& by = s.of.losses;
  const double experts = s.of.experts, tokens = s.tokens, layers = s.of.layers,
               share = detail::share_of_group(s, loss_scale);
  value sums = handed_statistics(t);
  if (sequence_parallel) sums = all_reduce(sums, region_axis);
  const value whole = by.local ? all_reduce(sums, axis::cp) : all_reduce_batch(sums);
  if (!by.local) t.reported = whole.id;
  if (by.balance != 0) {
    const bool of_all = by.over == router_losses::all_layers;
    const double scale =
        by.balance * experts * share / (tokens * tokens) / (of_all ? layers * layers : s.of.picks);
    add_loss(t.apply(of_all ? ops::balance_loss : ops::layer_balance_loss, {whole, sums}, {},
                     {.with = {.factor = scale}}));
  }
  if (by.z != 0)
    add_loss(t.apply(ops::z_loss, {whole, sums}, {}, {.with = {.factor = by.z * share * s.of.picks}}));
  if (s.of.fails())
    add_loss(t.apply(ops::overflow_loss, {whole, sums}, {}, {.with = {.log_scale = log_of_infinity}}));
}

}  // namespace rankc
