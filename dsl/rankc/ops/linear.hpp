// SPDX-License-Identifier: Apache-2.0
// Linear layers, with LoRA where the recipe asks for it, and biases.
#pragma once
#include <rankc/base/square_root.hpp>
#include <rankc/ops/elementwise.hpp>

namespace rankc {

namespace ops {

constexpr double product_flops(const op_sizes& s) { return 2 * s("tokens") * s("in") * s("out"); }

inline constexpr op_row linear_dx{
    .name = "linear_dx",
    .ports = {out("dx", "tokens in").adding(), in("dy", "tokens out"), parameter("w", "out in")},
    .rule = [](complaint& c, types in, type* out,
               const op&) { out[0] = placement_rules::linear(c, in[0], in[1], 0); },
    .flops = product_flops,
    .sizes = "tokens in out",
    .by_rows = true};
inline constexpr op_row linear_dw{
    .name = "linear_dw",
    .ports = {sum("dw", "out in"), in("dy", "tokens out"), in("x", "tokens in")},
    .rule =
        [](complaint& c, types in, type* out, const op&) {
          placement_rules::no_sum_over_slots(c, in[1]);
          for (axis a : axes) out[0][a] = placement_rules::outer(c, in[1], in[0], a);
        },
    .flops = product_flops,
    .sizes = "tokens in out"};
inline constexpr op_row linear{
    .name = "linear",
    .ports = {out("y", "tokens out"), in("x", "tokens in"), parameter("w", "out in")},
    .rule = [](complaint& c, types in, type* out,
               const op&) { out[0] = placement_rules::linear(c, in[0], in[1]); },
    .dual =
        [](backward& b) {
          b.give("x", b.apply(linear_dx, {b.gradient("y"), b["w"]}));
          b.contribute({"w"}, linear_dw, {b.gradient("y"), b["x"]});
        },
    .flops = product_flops,
    .sizes = "tokens in out",
    .by_rows = true};

inline constexpr op_row bias_grad{.name = "bias_grad",
                                  .ports = {sum("db", "width"), in("dy", "tokens width")},
                                  .rule = placement_rules::over_tokens,
                                  .sizes = "tokens width"};
inline constexpr op_row bias{
    .name = "bias",
    .ports = {out("y", "tokens width").over("x"), in("x", "tokens width"), parameter("b", "width")},
    .rule = placement_rules::bias,
    .dual =
        [](backward& b) {
          b.give("x", b.gradient("y"));
          b.contribute({"b"}, bias_grad, {b.gradient("y")});
        },
    .sizes = "tokens width"};

}  // namespace ops

namespace detail {
/// Declares one LoRA matrix of a weight, or returns it if the layer has declared it already. `low_dim` is the
/// dim of size `rank`.
constexpr value part_beside(trace& t, weight_info w, std::string_view part, int low_dim, dim rank,
                            here from) {
  w.name.part = part;
  for (const weight_info& known : t.weights)
    if (known.name == w.name) return {&t, known.id};
  w.holds.shape[low_dim] = rank;
  for (axis a : axes)
    if (w.holds[a] == V(low_dim)) w.holds[a] = I;
  w.from = from;
  w.trainable = true;
  return t.add(w);
}

/// y + scale x a^T b^T: adds the recipe's LoRA term to y = x w^T. `a` is sharded like w's inputs and `b` like
/// w's outputs, so the term has the placement of y.
constexpr value adapted(operand x, value w, value y) {
  trace& t = *w.in;
  const int index = t.find_parameter(w.id);
  if (!t.recipe || index < 0 || t.of(y).bad) return y;
  const low_rank_adaptation& lora = t.recipe->lora;
  weight_info beside = t.weights[static_cast<std::size_t>(index)];
  if (!lora.targets.has(beside.name.declared)) return y;
  const dim rank{"lora_rank", lora.rank};
  beside.start = initial::normal;
  beside.std = 1 / square_root(3.0 * beside.holds.shape[1].size);
  value a = part_beside(t, beside, ".lora_a", 0, rank, x.from);
  beside.start = initial::zeros;
  beside.std = 0;
  value b = part_beside(t, beside, ".lora_b", 1, rank, x.from);
  value low =
      scale({t.apply(ops::linear, {x.v, a}, x.from), x.from.file, x.from.line}, lora.alpha / lora.rank);
  return t.apply(ops::add, {y, t.apply(ops::linear, {low, b}, x.from)}, x.from);
}
}  // namespace detail

/// x w^T, plus the LoRA term if the recipe adapts w.
/// Shapes: x (tokens, in), w (out, in); result (tokens, out).
/// Errors: RC210.
constexpr value linear(operand x, value w) {
  return detail::adapted(x, w, w.in->apply(ops::linear, {x.v, w}, x.from));
}
/// Adds b to every row of x.
/// Shapes: x (tokens, width), b (width).
/// Errors: RC210.
constexpr value bias(operand x, value b) { return b.in->apply(ops::bias, {x.v, b}, x.from); }

}  // namespace rankc
