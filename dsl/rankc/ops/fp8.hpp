// SPDX-License-Identifier: Apache-2.0
// Linear layers with fp8 operands, and the ops that cast activations, weights and gradients to fp8.
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

/// A GEMM with fp8 operands: activations and weights in e4m3, gradients in e5m2.
constexpr op_row product_in_fp8(op_row row, std::string_view name) {
  row.name = name;
  row.rule = nullptr;
  row.dual = nullptr;
  row.by_rows = false;
  for (port& p : row.ports) {
    if (p.name == "x" || p.name == "w") p.holds = element::e4m3;
    if (p.name == "w") p.as = use::in;
    if (p.name == "dy") p.holds = element::e5m2;
  }
  return row;
}
inline constexpr op_row linear_fp8 = product_in_fp8(linear, "linear_fp8"),
                        linear_bias_fp8 = product_in_fp8(linear_bias, "linear_bias_fp8"),
                        linear_add_fp8 = product_in_fp8(linear_add, "linear_add_fp8"),
                        linear_bias_add_fp8 = product_in_fp8(linear_bias_add, "linear_bias_add_fp8"),
                        linear_dx_fp8 = product_in_fp8(linear_dx, "linear_dx_fp8"),
                        linear_dw_fp8 = product_in_fp8(linear_dw, "linear_dw_fp8");

/// The variant of an op that writes its results as `to`. Only GPUs have the kernel.
constexpr op_row rounded(op_row row, std::string_view name, element to, std::string_view sizes) {
  row.name = name;
  row.rule = nullptr;
  row.dual = nullptr;
  row.family = op_family::none;
  row.sizes = "";
  row.cuda.sizes = sizes;
  for (port& p : row.ports)
    if (p.is_written() && p.holds == element::real) p.holds = to;
  return row;
}
inline constexpr op_row layer_norm_e4m3 =
                            rounded(layer_norm, "layer_norm_e4m3", element::e4m3, "tokens width number"),
                        rms_norm_e4m3 =
                            rounded(rms_norm, "rms_norm_e4m3", element::e4m3, "tokens width number"),
                        gelu_e4m3 = rounded(gelu, "gelu_e4m3", element::e4m3, "tokens width"),
                        swiglu_e4m3 = rounded(swiglu, "swiglu_e4m3", element::e4m3, "tokens width stride"),
                        swiglu_grad_e5m2 =
                            rounded(swiglu_grad, "swiglu_grad_e5m2", element::e5m2, "tokens width stride");

/// The variant with one scale per row of each fp8 tensor. `kernel`: the kernel's name, if it is not the
/// row's.
constexpr op_row by_rows(op_row row, std::string_view name, std::string_view kernel = "") {
  row.name = name;
  row.kernel = kernel;
  for (port& p : row.ports)
    if (is_fp8(p.holds)) p.holds = element::e4m3_rows;
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

/// A row and its fp8 variants: one scale per tensor (in_fp8), or one per row (in_rows). Their ports have the
/// same order.
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
/// Ops whose result is cast to fp8, each with the variants that write fp8 directly.
inline constexpr narrowed_row fp8_makers[]{{&layer_norm, &layer_norm_e4m3, &layer_norm_e4m3_rows},
                                           {&rms_norm, &rms_norm_e4m3, &rms_norm_e4m3_rows},
                                           {&gelu, &gelu_e4m3, &gelu_e4m3_rows},
                                           {&swiglu, &swiglu_e4m3, &swiglu_e4m3_rows},
                                           {&swiglu_grad, &swiglu_grad_e5m2, &swiglu_grad_e4m3_rows}};
/// The op that casts a weight, or another operand, to an fp8 type.
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

/// Visits all rows that write or read fp8.
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
/// The fp8 variant of a linear op; nullptr for other ops.
constexpr const op_row* in_fp8(const op_row& row, linear_precision p) {
  for (const narrowed_row& n : fp8_products)
    if (n.of == &row) return n.by(p);
  return nullptr;
}
constexpr bool has_fp8(const op_row& row) { return in_fp8(row, fp8) != nullptr; }

}  // namespace rankc::ops
