// SPDX-License-Identifier: Apache-2.0
// Normalization of rows. Each forward op also returns the statistics of its rows, which backward reads.
#pragma once
#include <rankc/trace/backward.hpp>

namespace rankc {

namespace ops {

inline constexpr number_attribute eps{"eps", &attributes::eps};

inline constexpr op_row layer_norm_dx{
    .name = "layer_norm_dx",
    .ports = {out("dx", "tokens width").over("dy"), in("dy", "tokens width"), in("x", "tokens width"),
              in("statistics", "tokens 2").wide(), parameter("gain", "width")},
    .rule = placement_rules::norm_gradient,
    .sizes = "tokens width",
    .number = eps};
inline constexpr op_row layer_norm_dw{
    .name = "layer_norm_dw",
    .ports = {sum("dgain", "width"), sum("dshift", "width"), in("dy", "tokens width"),
              in("x", "tokens width"), in("statistics", "tokens 2").wide()},
    .rule = placement_rules::over_tokens,
    .sizes = "tokens width",
    .number = eps};
inline constexpr op_row layer_norm{
    .name = "layer_norm",
    .ports = {out("y", "tokens width"), out("statistics", "tokens 2").wide(), in("x", "tokens width"),
              parameter("gain", "width"), parameter("shift", "width")},
    .rule = placement_rules::norm,
    .dual =
        [](backward& b) {
          b.give("x", b.apply(layer_norm_dx, {b.gradient("y"), b["x"], b["statistics"], b["gain"]}));
          b.contribute({"gain", "shift"}, layer_norm_dw, {b.gradient("y"), b["x"], b["statistics"]});
        },
    .sizes = "tokens width number",
    .family = op_family::norm,
    .number = eps};

inline constexpr op_row rms_norm_dx{
    .name = "rms_norm_dx",
    .ports = {out("dx", "tokens width").over("dy"), in("dy", "tokens width"), in("x", "tokens width"),
              in("statistics", "tokens 1").wide(), parameter("gain", "width")},
    .rule = placement_rules::norm_gradient,
    .sizes = "tokens width",
    .number = eps};
inline constexpr op_row rms_norm_dw{.name = "rms_norm_dw",
                                    .ports = {sum("dgain", "width"), in("dy", "tokens width"),
                                              in("x", "tokens width"), in("statistics", "tokens 1").wide()},
                                    .rule = placement_rules::over_tokens,
                                    .sizes = "tokens width",
                                    .number = eps};
inline constexpr op_row rms_norm{
    .name = "rms_norm",
    .ports = {out("y", "tokens width"), out("statistics", "tokens 1").wide(), in("x", "tokens width"),
              parameter("gain", "width")},
    .rule = placement_rules::norm,
    .dual =
        [](backward& b) {
          b.give("x", b.apply(rms_norm_dx, {b.gradient("y"), b["x"], b["statistics"], b["gain"]}));
          b.contribute({"gain"}, rms_norm_dw, {b.gradient("y"), b["x"], b["statistics"]});
        },
    .sizes = "tokens width number",
    .family = op_family::norm,
    .number = eps};

// ---- norms of each head: the kernels see tokens * heads rows of one head each
inline constexpr op_row head_norm_dx{
    .name = "head_norm_dx",
    .ports = {out("dx", "tokens heads*dim").over("dy"), in("dy", "tokens heads*dim"),
              in("x", "tokens heads*dim"), in("statistics", "tokens heads").wide(), parameter("gain", "dim")},
    .rule = placement_rules::norm_gradient,
    .kernel = "rms_norm_dx",
    .sizes = "tokens*heads dim",
    .number = eps};
inline constexpr op_row head_norm_dw{
    .name = "head_norm_dw",
    .ports = {sum("dgain", "dim"), in("dy", "tokens heads*dim"), in("x", "tokens heads*dim"),
              in("statistics", "tokens heads").wide()},
    .rule =
        [](complaint& c, types in, type* out, const op&) {
          placement_rules::no_sum_over_slots(c, in[0]);
          for (axis a : axes) out[0][a] = in[0][a].k == placement::V ? P : in[0][a];
        },
    .kernel = "rms_norm_dw",
    .sizes = "tokens*heads dim",
    .number = eps};
inline constexpr op_row head_norm{
    .name = "head_norm",
    .ports = {out("y", "tokens heads*dim"), out("statistics", "tokens heads").wide(),
              in("x", "tokens heads*dim"), parameter("gain", "dim")},
    .rule =
        [](complaint& c, types in, type* out, const op& o) {
          const type &x = in[0], &gain = in[1];
          if (!placement_rules::rows(c, "the value", x)) return;
          const dim& heads = x.shape[x.last()];
          out[0] = out[1] = x;
          out[1].shape[1] = dim{heads.name, heads.count()};
          out[1].holds = element::wide;
          for (axis a : axes) {
            if (x[a] == P)
              c.found(a, "the value", x, placement_rules::any_but_pending, placement_rules::reduce_first);
            if (gain[a] != I)
              c.found(a, "the weight", gain, "the same on every rank (I)", "declare it without a shard");
          }
          if (c.said || (gain.ndim == 1 && gain.shape[0].size == heads.unit))
            return placement_rules::norm_eps(c, o);
          complaint::put_shape(c.begin() << "the weight is ", gain);
          c.text << "; expected one number for each element of a head, " << heads.unit << " in " << heads.name
                 << "=" << heads.size;
        },
    .dual =
        [](backward& b) {
          b.give("x", b.apply(head_norm_dx, {b.gradient("y"), b["x"], b["statistics"], b["gain"]}));
          b.contribute({"gain"}, head_norm_dw, {b.gradient("y"), b["x"], b["statistics"]});
        },
    .kernel = "rms_norm",
    .sizes = "tokens*heads dim number",
    .family = op_family::norm,
    .number = eps};

}  // namespace ops

/// Normalizes each row to mean 0 and variance 1, then multiplies by gain and adds shift. eps is added to the
/// variance.
/// Shapes: x (tokens, width), gain and shift (width).
/// Errors: RC210.
/// Source: Ba et al. 2016.
constexpr value layer_norm(operand x, value gain, value shift, double eps = default_norm_eps) {
  if (gain.id == shift.id) {
    trace& t = *gain.in;
    const int w = t.find_parameter(gain.id);
    complaint c{"layer_norm", w < 0 ? parameter_name{} : t.weights[w].name, x.from};
    c.begin() << "it is the gain and the shift; expected two parameters";
    t.refuse(c);
  }
  return gain.in->apply(ops::layer_norm, {x.v, gain, shift}, x.from, {.with = {.eps = eps}});
}
/// Normalizes each row to mean square 1, then multiplies by gain. eps is added to the mean square.
/// Shapes: x (tokens, width), gain (width).
/// Errors: RC210.
/// Source: Zhang and Sennrich 2019.
constexpr value rms_norm(operand x, value gain, double eps = default_norm_eps) {
  return gain.in->apply(ops::rms_norm, {x.v, gain}, x.from, {.with = {.eps = eps}});
}
/// RMSNorm of each head separately, with one gain for all heads.
/// Shapes: x (tokens, heads), gain (elements of one head).
/// Errors: RC210.
/// Source: Henry et al. 2020, for queries and keys.
constexpr value head_norm(operand x, value gain, double eps = default_norm_eps) {
  return gain.in->apply(ops::head_norm, {x.v, gain}, x.from, {.with = {.eps = eps}});
}

}  // namespace rankc
