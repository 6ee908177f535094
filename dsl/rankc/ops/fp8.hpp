// SPDX-License-Identifier: Apache-2.0
// Linear layers on operands of eight bits, and what makes these: of activations, of weights, of gradients.
#pragma once
#include <rankc/recipe/training.hpp>
#include <rankc/ops/fused.hpp>

namespace rankc::ops {
inline constexpr op_row to_e4m3{.name = "to_e4m3",
                                .ports = {out("q", "tokens width").e4m3(), in("x", "tokens width")},
                                .sizes = "tokens width"};
inline constexpr op_row weight_to_e4m3{.name = "weight_to_e4m3",
                                       .ports = {out("q", "out in").e4m3(), parameter("w", "out in")},
                                       .kernel = "to_e4m3",
                                       .sizes = "out in"};
inline constexpr op_row to_e5m2{.name = "to_e5m2",
                                .ports = {out("q", "tokens width").e5m2(), in("x", "tokens width")},
                                .sizes = "tokens width"};

inline constexpr op_row linear_fp8{
    .name = "linear_fp8",
    .ports = {out("y", "tokens out"), in("x", "tokens in").e4m3(), in("w", "out in").e4m3()},
    .flops = product_flops,
    .sizes = "tokens in out"};
inline constexpr op_row linear_bias_fp8{.name = "linear_bias_fp8",
                                        .ports = {out("y", "tokens out"), in("x", "tokens in").e4m3(),
                                                  in("w", "out in").e4m3(), parameter("b", "out")},
                                        .flops = product_flops,
                                        .cuda = {.sizes = "tokens in out"}};
inline constexpr op_row linear_add_fp8{
    .name = "linear_add_fp8",
    .ports = {out("y", "tokens out").over("residual"), in("x", "tokens in").e4m3(), in("w", "out in").e4m3(),
              in("residual", "tokens out")},
    .flops = product_flops,
    .cuda = {.sizes = "tokens in out"}};
inline constexpr op_row linear_bias_add_fp8{
    .name = "linear_bias_add_fp8",
    .ports = {out("y", "tokens out").over("residual"), in("x", "tokens in").e4m3(), in("w", "out in").e4m3(),
              parameter("b", "out"), in("residual", "tokens out")},
    .flops = product_flops,
    .cuda = {.sizes = "tokens in out"}};
inline constexpr op_row linear_dx_fp8{
    .name = "linear_dx_fp8",
    .ports = {out("dx", "tokens in").adding(), in("dy", "tokens out").e5m2(), in("w", "out in").e4m3()},
    .flops = product_flops,
    .sizes = "tokens in out"};
inline constexpr op_row linear_dw_fp8{
    .name = "linear_dw_fp8",
    .ports = {sum("dw", "out in"), in("dy", "tokens out").e5m2(), in("x", "tokens in").e4m3()},
    .flops = product_flops,
    .sizes = "tokens in out"};

// ---- norms and activations that round what they make
inline constexpr op_row layer_norm_e4m3{
    .name = "layer_norm_e4m3",
    .ports = {out("y", "tokens width").e4m3(), out("statistics", "tokens 2").wide(), in("x", "tokens width"),
              parameter("gain", "width"), parameter("shift", "width")},
    .cuda = {.sizes = "tokens width number"},
    .number = "eps"};
inline constexpr op_row rms_norm_e4m3{
    .name = "rms_norm_e4m3",
    .ports = {out("y", "tokens width").e4m3(), out("statistics", "tokens 1").wide(), in("x", "tokens width"),
              parameter("gain", "width")},
    .cuda = {.sizes = "tokens width number"},
    .number = "eps"};
inline constexpr op_row gelu_e4m3{.name = "gelu_e4m3",
                                  .ports = {out("y", "tokens width").e4m3(), in("x", "tokens width")},
                                  .cuda = {.sizes = "tokens width"}};
inline constexpr op_row swiglu_e4m3{
    .name = "swiglu_e4m3",
    .ports = {out("y", "tokens width").e4m3(), in("gate", "tokens width : stride"),
              in("up", "tokens width : stride")},
    .cuda = {.sizes = "tokens width stride"}};
inline constexpr op_row swiglu_grad_e5m2{
    .name = "swiglu_grad_e5m2",
    .ports = {out("dgate", "tokens width : stride").e5m2(), out("dup", "tokens width : stride").e5m2(),
              in("dy", "tokens width"), in("gate", "tokens width : stride"),
              in("up", "tokens width : stride")},
    .cuda = {.sizes = "tokens width stride"}};

// ---- the same with a scale for each row
/// A row whose tensors of eight bits are of e4m3_rows, and its kernels' name, where that is not the row's.
constexpr op_row by_rows(op_row row, std::string_view name, std::string_view kernel = "") {
  row.name = name;
  for (port& p : row.ports)
    if (is_fp8(p.holds)) p.holds = element::e4m3_rows;
  for (kernel_row* k : {&row.host, &row.cuda})
    if (!k->name.empty()) k->name = kernel.empty() ? name : kernel;
  return row;
}
inline constexpr op_row to_e4m3_rows = by_rows(to_e4m3, "to_e4m3_rows");
inline constexpr op_row weight_to_e4m3_rows =
    by_rows(weight_to_e4m3, "weight_to_e4m3_rows", to_e4m3_rows.name);
inline constexpr op_row linear_fp8_rows = by_rows(linear_fp8, "linear_fp8_rows");
inline constexpr op_row linear_bias_fp8_rows = by_rows(linear_bias_fp8, "linear_bias_fp8_rows");
inline constexpr op_row linear_add_fp8_rows = by_rows(linear_add_fp8, "linear_add_fp8_rows");
inline constexpr op_row linear_bias_add_fp8_rows = by_rows(linear_bias_add_fp8, "linear_bias_add_fp8_rows");
inline constexpr op_row linear_dx_fp8_rows = by_rows(linear_dx_fp8, "linear_dx_fp8_rows");
inline constexpr op_row linear_dw_fp8_rows = by_rows(linear_dw_fp8, "linear_dw_fp8_rows");
inline constexpr op_row layer_norm_e4m3_rows = by_rows(layer_norm_e4m3, "layer_norm_e4m3_rows");
inline constexpr op_row rms_norm_e4m3_rows = by_rows(rms_norm_e4m3, "rms_norm_e4m3_rows");
inline constexpr op_row gelu_e4m3_rows = by_rows(gelu_e4m3, "gelu_e4m3_rows");
inline constexpr op_row swiglu_e4m3_rows = by_rows(swiglu_e4m3, "swiglu_e4m3_rows");
inline constexpr op_row swiglu_grad_e4m3_rows = by_rows(swiglu_grad_e5m2, "swiglu_grad_e4m3_rows");

/// A row, and its likes of eight bits: of the same ports, in their order.
struct narrowed_row {
  const op_row *of, *in_fp8, *in_rows;
  constexpr const op_row* by(linear_precision p) const { return p == fp8_rows ? in_rows : in_fp8; }
};
inline constexpr narrowed_row fp8_products[]{
    {&linear, &linear_fp8, &linear_fp8_rows},
    {&linear_bias, &linear_bias_fp8, &linear_bias_fp8_rows},
    {&linear_add, &linear_add_fp8, &linear_add_fp8_rows},
    {&linear_bias_add, &linear_bias_add_fp8, &linear_bias_add_fp8_rows},
    {&linear_dx, &linear_dx_fp8, &linear_dx_fp8_rows},
    {&linear_dw, &linear_dw_fp8, &linear_dw_fp8_rows}};
/// What makes numbers that are then rounded, and the same with what it makes rounded.
inline constexpr narrowed_row fp8_makers[]{{&layer_norm, &layer_norm_e4m3, &layer_norm_e4m3_rows},
                                           {&rms_norm, &rms_norm_e4m3, &rms_norm_e4m3_rows},
                                           {&gelu, &gelu_e4m3, &gelu_e4m3_rows},
                                           {&swiglu, &swiglu_e4m3, &swiglu_e4m3_rows},
                                           {&swiglu_grad, &swiglu_grad_e5m2, &swiglu_grad_e4m3_rows}};
/// What rounds a weight, or another operand, to a type.
struct fp8_cast {
  element to;
  bool of_weights;
  const op_row* row;
};
inline constexpr fp8_cast fp8_casts[]{{element::e4m3, false, &to_e4m3},
                                      {element::e4m3, true, &weight_to_e4m3},
                                      {element::e5m2, false, &to_e5m2},
                                      {element::e4m3_rows, false, &to_e4m3_rows},
                                      {element::e4m3_rows, true, &weight_to_e4m3_rows}};
constexpr const op_row* cast_to(element e, bool of_weights) {
  for (const fp8_cast& c : fp8_casts)
    if (c.to == e && c.of_weights == of_weights) return c.row;
  return nullptr;
}

/// All rows that make operands of eight bits, or take them.
constexpr void each_fp8_row(auto visit) {
  for (const fp8_cast& c : fp8_casts) visit(*c.row);
  for (const narrowed_row& p : fp8_products) {
    visit(*p.in_fp8);
    visit(*p.in_rows);
  }
  for (const narrowed_row& m : fp8_makers) {
    visit(*m.in_fp8);
    visit(*m.in_rows);
  }
}
/// A row's like with operands of eight bits; none where it has none.
constexpr const op_row* in_fp8(const op_row& row, linear_precision p) {
  for (const narrowed_row& n : fp8_products)
    if (n.of == &row) return n.by(p);
  return nullptr;
}
constexpr bool has_fp8(const op_row& row) { return in_fp8(row, fp8) != nullptr; }

}  // namespace rankc::ops
