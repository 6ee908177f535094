// SPDX-License-Identifier: Apache-2.0
// Linear layers on operands of eight bits, and what makes these: of activations, of weights, of gradients.
#pragma once
#include <rankc/ops/fused.hpp>

namespace rankc::ops {
using namespace ports;

inline constexpr op_row to_e4m3{.name = "to_e4m3",
                                .ports = {out("q", "tokens width").e4m3(), in("x", "tokens width")},
                                .host = {"to_e4m3", "tokens width"},
                                .cuda = {"to_e4m3", "tokens width"}};
inline constexpr op_row weight_to_e4m3{.name = "weight_to_e4m3",
                                       .ports = {out("q", "out in").e4m3(), parameter("w", "out in")},
                                       .host = {"to_e4m3", "out in"},
                                       .cuda = {"to_e4m3", "out in"}};
inline constexpr op_row to_e5m2{.name = "to_e5m2",
                                .ports = {out("q", "tokens width").e5m2(), in("x", "tokens width")},
                                .host = {"to_e5m2", "tokens width"},
                                .cuda = {"to_e5m2", "tokens width"}};

inline constexpr op_row linear_fp8{.name = "linear_fp8",
                                   .ports = {out("y", "tokens out"), in("x", "tokens in").e4m3(), in("w", "out in").e4m3()},
                                   .flops = product_flops,
                                   .host = {"linear_fp8", "tokens in out"},
                                   .cuda = {"linear_fp8", "tokens in out"}};
inline constexpr op_row linear_bias_fp8{
    .name = "linear_bias_fp8",
    .ports = {out("y", "tokens out"), in("x", "tokens in").e4m3(), in("w", "out in").e4m3(), parameter("b", "out")},
    .flops = product_flops,
    .cuda = {"linear_bias_fp8", "tokens in out"}};
inline constexpr op_row linear_add_fp8{.name = "linear_add_fp8",
                                       .ports = {out("y", "tokens out").over("residual"), in("x", "tokens in").e4m3(),
                                                 in("w", "out in").e4m3(), in("residual", "tokens out")},
                                       .flops = product_flops,
                                       .cuda = {"linear_add_fp8", "tokens in out"}};
inline constexpr op_row linear_bias_add_fp8{
    .name = "linear_bias_add_fp8",
    .ports = {out("y", "tokens out").over("residual"), in("x", "tokens in").e4m3(), in("w", "out in").e4m3(),
              parameter("b", "out"), in("residual", "tokens out")},
    .flops = product_flops,
    .cuda = {"linear_bias_add_fp8", "tokens in out"}};
inline constexpr op_row linear_dx_fp8{
    .name = "linear_dx_fp8",
    .ports = {out("dx", "tokens in").adding(), in("dy", "tokens out").e5m2(), in("w", "out in").e4m3()},
    .flops = product_flops,
    .host = {"linear_dx_fp8", "tokens in out"},
    .cuda = {"linear_dx_fp8", "tokens in out"}};
inline constexpr op_row linear_dw_fp8{
    .name = "linear_dw_fp8",
    .ports = {sum("dw", "out in"), in("dy", "tokens out").e5m2(), in("x", "tokens in").e4m3()},
    .flops = product_flops,
    .host = {"linear_dw_fp8", "tokens in out"},
    .cuda = {"linear_dw_fp8", "tokens in out"}};

// ---- norms and activations that round what they make
inline constexpr op_row layer_norm_e4m3{
    .name = "layer_norm_e4m3",
    .ports = {out("y", "tokens width").e4m3(), out("statistics", "tokens 2").wide(), in("x", "tokens width"),
              parameter("gain", "width"), parameter("shift", "width")},
    .cuda = {"layer_norm_e4m3", "tokens width number"},
    .number = "eps"};
inline constexpr op_row rms_norm_e4m3{.name = "rms_norm_e4m3",
                                      .ports = {out("y", "tokens width").e4m3(), out("statistics", "tokens 1").wide(),
                                                in("x", "tokens width"), parameter("gain", "width")},
                                      .cuda = {"rms_norm_e4m3", "tokens width number"},
                                      .number = "eps"};
inline constexpr op_row gelu_e4m3{.name = "gelu_e4m3",
                                  .ports = {out("y", "tokens width").e4m3(), in("x", "tokens width")},
                                  .cuda = {"gelu_e4m3", "tokens width"}};
inline constexpr op_row swiglu_e4m3{
    .name = "swiglu_e4m3",
    .ports = {out("y", "tokens width").e4m3(), in("gate", "tokens width : stride"), in("up", "tokens width : stride")},
    .cuda = {"swiglu_e4m3", "tokens width stride"}};
inline constexpr op_row swiglu_grad_e5m2{
    .name = "swiglu_grad_e5m2",
    .ports = {out("dgate", "tokens width : stride").e5m2(), out("dup", "tokens width : stride").e5m2(), in("dy", "tokens width"),
              in("gate", "tokens width : stride"), in("up", "tokens width : stride")},
    .cuda = {"swiglu_grad_e5m2", "tokens width stride"}};

inline constexpr const op_row* fp8_casts[]{&to_e4m3, &weight_to_e4m3, &to_e5m2};
/// A row, and its like of eight bits: of the same ports, in their order.
struct narrowed_row {
  const op_row *of, *in_fp8;
};
inline constexpr narrowed_row fp8_products[]{
    {&linear, &linear_fp8},   {&linear_bias, &linear_bias_fp8}, {&linear_add, &linear_add_fp8}, {&linear_bias_add, &linear_bias_add_fp8},
    {&linear_dx, &linear_dx_fp8}, {&linear_dw, &linear_dw_fp8}};
/// What makes numbers that are then rounded, and the same with what it makes rounded.
inline constexpr narrowed_row fp8_makers[]{{&layer_norm, &layer_norm_e4m3}, {&rms_norm, &rms_norm_e4m3}, {&gelu, &gelu_e4m3},
                                         {&swiglu, &swiglu_e4m3}, {&swiglu_grad, &swiglu_grad_e5m2}};
/// A row's like with operands of eight bits; none where it has none.
constexpr const op_row* in_fp8(const op_row& row) {
  for (const narrowed_row& p : fp8_products)
    if (p.of == &row) return p.in_fp8;
  return nullptr;
}

}  // namespace rankc::ops
