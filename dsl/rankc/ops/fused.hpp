// SPDX-License-Identifier: Apache-2.0
// Fused ops, each of which replaces two or more ops and reads memory fewer times, and the table of these
// fusions. A fusion is applied only if the target has the fused kernel.
#pragma once
#include <rankc/ops/attention.hpp>
#include <rankc/ops/cross_entropy.hpp>
#include <rankc/ops/elementwise.hpp>
#include <rankc/ops/experts.hpp>
#include <rankc/ops/linear.hpp>
#include <rankc/ops/norm.hpp>

namespace rankc::ops {
// ---- GEMMs with an epilogue
inline constexpr op_row linear_bias{
    .name = "linear_bias",
    .ports = {out("y", "tokens out"), in("x", "tokens in"), parameter("w", "out in"), parameter("b", "out")},
    .flops = product_flops,
    .cuda = {.sizes = "tokens in out"},
    .by_rows = true};
inline constexpr op_row linear_add{.name = "linear_add",
                                   .ports = {out("y", "tokens out").over("residual"), in("x", "tokens in"),
                                             parameter("w", "out in"), in("residual", "tokens out")},
                                   .flops = product_flops,
                                   .cuda = {.sizes = "tokens in out"},
                                   .by_rows = true};
inline constexpr op_row linear_bias_add{
    .name = "linear_bias_add",
    .ports = {out("y", "tokens out").over("residual"), in("x", "tokens in"), parameter("w", "out in"),
              parameter("b", "out"), in("residual", "tokens out")},
    .flops = product_flops,
    .cuda = {.sizes = "tokens in out"},
    .by_rows = true};
inline constexpr op_row linear_gelu{.name = "linear_gelu",
                                    .ports = {out("y", "tokens out"), out("before", "tokens out"),
                                              in("x", "tokens in"), parameter("w", "out in")},
                                    .flops = product_flops,
                                    .cuda = {.sizes = "tokens in out"},
                                    .by_rows = true};
inline constexpr op_row linear_bias_gelu{
    .name = "linear_bias_gelu",
    .ports = {out("y", "tokens out"), out("before", "tokens out"), in("x", "tokens in"),
              parameter("w", "out in"), parameter("b", "out")},
    .flops = product_flops,
    .cuda = {.sizes = "tokens in out"},
    .by_rows = true};
inline constexpr op_row linear_dx_gelu{.name = "linear_dx_gelu",
                                       .ports = {out("dx", "tokens in"), in("dy", "tokens out"),
                                                 parameter("w", "out in"), in("before", "tokens in")},
                                       .flops = product_flops,
                                       .cuda = {.sizes = "tokens in out"},
                                       .by_rows = true};
inline constexpr op_row linear_dx_gelu_bias{
    .name = "linear_dx_gelu_bias",
    .ports = {out("dx", "tokens in"), sum("db", "in"), in("dy", "tokens out"), parameter("w", "out in"),
              in("before", "tokens in")},
    .flops = product_flops,
    .cuda = {.sizes = "tokens in out"},
    .by_rows = true};
inline constexpr op_row linear_dw_bias{
    .name = "linear_dw_bias",
    .ports = {sum("dw", "out in"), sum("db", "out"), in("dy", "tokens out"), in("x", "tokens in")},
    .flops = product_flops,
    .cuda = {.sizes = "tokens in out"}};

inline constexpr op_row expert_down_add{
    .name = "expert_down_add",
    .ports = {out("y", "tokens*picks in").over("residual"), in("x", "tokens*picks out"),
              parameter("w", "experts*in out"), in("offsets", "2 segments").index(),
              in("residual", "tokens*picks in")},
    .flops = expert_flops,
    .cuda = {"grouped_linear_add", "tokens*picks out in segments experts"}};
inline constexpr op_row expert_down_two{
    .name = "expert_down_two",
    .ports = {out("y", "tokens*picks in"), in("x", "tokens*picks out"), parameter("w", "experts*in out"),
              in("x2", "tokens*picks out"), parameter("w2", "experts*in out"),
              in("offsets", "2 segments").index()},
    .flops = [](const op_sizes& s) { return 2 * expert_flops(s); },
    .cuda = {"grouped_linear_two", "tokens*picks out in segments experts"}};

// ---- elementwise sums and norms
inline constexpr op_row bias_add{
    .name = "bias_add",
    .ports = {out("y", "tokens width").over("x", "residual"), in("x", "tokens width"),
              parameter("b", "width"), in("residual", "tokens width")},
    .cuda = {.sizes = "tokens width"}};
inline constexpr op_row add_layer_norm{
    .name = "add_layer_norm",
    .ports = {out("sum", "tokens width").over("x", "residual"), out("y", "tokens width"),
              out("statistics", "tokens 2").wide(), in("x", "tokens width"), in("residual", "tokens width"),
              parameter("gain", "width"), parameter("shift", "width")},
    .cuda = {.sizes = "tokens width number"},
    .number = eps};
inline constexpr op_row bias_add_layer_norm{
    .name = "bias_add_layer_norm",
    .ports = {out("sum", "tokens width").over("x", "residual"), out("y", "tokens width"),
              out("statistics", "tokens 2").wide(), in("x", "tokens width"), parameter("b", "width"),
              in("residual", "tokens width"), parameter("gain", "width"), parameter("shift", "width")},
    .cuda = {.sizes = "tokens width number"},
    .number = eps};
inline constexpr op_row add_rms_norm{
    .name = "add_rms_norm",
    .ports = {out("sum", "tokens width").over("x", "residual"), out("y", "tokens width"),
              out("statistics", "tokens 1").wide(), in("x", "tokens width"), in("residual", "tokens width"),
              parameter("gain", "width")},
    .cuda = {.sizes = "tokens width number"},
    .number = eps};
inline constexpr op_row layer_norm_grad{
    .name = "layer_norm_grad",
    .ports = {out("dx", "tokens width").over("dy"), sum("dgain", "width"), sum("dshift", "width"),
              in("dy", "tokens width"), in("x", "tokens width"), in("statistics", "tokens 2").wide(),
              parameter("gain", "width")},
    .cuda = {.sizes = "tokens width"}};
inline constexpr op_row layer_norm_grad_add{
    .name = "layer_norm_grad_add",
    .ports = {out("dx", "tokens width").over("residual", "dy"), sum("dgain", "width"), sum("dshift", "width"),
              in("dy", "tokens width"), in("x", "tokens width"), in("statistics", "tokens 2").wide(),
              parameter("gain", "width"), in("residual", "tokens width")},
    .cuda = {.sizes = "tokens width"}};
inline constexpr op_row layer_norm_grad_add_bias{
    .name = "layer_norm_grad_add_bias",
    .ports = {out("dx", "tokens width").over("residual", "dy"), sum("dgain", "width"), sum("dshift", "width"),
              sum("db", "width"), in("dy", "tokens width"), in("x", "tokens width"),
              in("statistics", "tokens 2").wide(), parameter("gain", "width"),
              in("residual", "tokens width")},
    .cuda = {.sizes = "tokens width"}};
inline constexpr op_row rms_norm_grad{
    .name = "rms_norm_grad",
    .ports = {out("dx", "tokens width").over("dy"), sum("dgain", "width"), in("dy", "tokens width"),
              in("x", "tokens width"), in("statistics", "tokens 1").wide(), parameter("gain", "width")},
    .cuda = {.sizes = "tokens width"}};
inline constexpr op_row rms_norm_grad_add{
    .name = "rms_norm_grad_add",
    .ports = {out("dx", "tokens width").over("residual", "dy"), sum("dgain", "width"),
              in("dy", "tokens width"), in("x", "tokens width"), in("statistics", "tokens 1").wide(),
              parameter("gain", "width"), in("residual", "tokens width")},
    .cuda = {.sizes = "tokens width"}};
inline constexpr op_row head_norm_grad{
    .name = "head_norm_grad",
    .ports = {out("dx", "tokens heads*dim").over("dy"), sum("dgain", "dim"), in("dy", "tokens heads*dim"),
              in("x", "tokens heads*dim"), in("statistics", "tokens heads").wide(), parameter("gain", "dim")},
    .cuda = {"rms_norm_grad", "tokens*heads dim"}};

// ---- loss
inline constexpr op_row softmax_sums{.name = "softmax_sums",
                                     .ports = {out("top", "tokens 1").wide(), out("sums", "tokens 2").wide(),
                                               in("logits", "tokens vocab"), in("targets", "tokens").index()},
                                     .cuda = {.sizes = "tokens vocab"}};
inline constexpr op_row softmax_grad{
    .name = "softmax_grad",
    .ports = {out("dlogits", "tokens vocab@first").over("logits"), in("sums", "tokens 2").wide(),
              in("logits", "tokens vocab@first"), in("top", "tokens 1").wide(),
              in("targets", "tokens").index()},
    .cuda = {.sizes = "tokens vocab first number"}};
inline constexpr op_row softmax_sums_grad{
    .name = "softmax_sums_grad",
    .ports = {out("dlogits", "tokens vocab").over("logits"), out("sums", "tokens 2").wide(),
              in("logits", "tokens vocab"), in("targets", "tokens").index()},
    .cuda = {.sizes = "tokens vocab number"}};
inline constexpr op_row masked_softmax_grad{
    .name = "masked_softmax_grad",
    .ports = {out("dlogits", "tokens vocab@first").over("logits"), in("sums", "tokens 2").wide(),
              in("logits", "tokens vocab@first"), in("top", "tokens 1").wide(),
              in("targets", "tokens").index(), in("count", "1").wide()},
    .cuda = {.sizes = "tokens vocab first number"}};
inline constexpr op_row masked_softmax_sums_grad{
    .name = "masked_softmax_sums_grad",
    .ports = {out("dlogits", "tokens vocab").over("logits"), out("sums", "tokens 2").wide(),
              in("logits", "tokens vocab"), in("targets", "tokens").index(), in("count", "1").wide()},
    .cuda = {.sizes = "tokens vocab number"}};
inline constexpr op_row weighted_softmax_grad{
    .name = "weighted_softmax_grad",
    .ports = {out("dlogits", "tokens vocab@first").over("logits"), in("sums", "tokens 2").wide(),
              in("logits", "tokens vocab@first"), in("top", "tokens 1").wide(),
              in("targets", "tokens").index(), in("weights", "tokens").wide(), in("count", "1").wide()},
    .cuda = {.sizes = "tokens vocab first number"}};
inline constexpr op_row weighted_softmax_sums_grad{
    .name = "weighted_softmax_sums_grad",
    .ports = {out("dlogits", "tokens vocab").over("logits"), out("sums", "tokens 2").wide(),
              in("logits", "tokens vocab"), in("targets", "tokens").index(), in("weights", "tokens").wide(),
              in("count", "1").wide()},
    .cuda = {.sizes = "tokens vocab number"}};

/// The fusions in the order in which they are tried, each on all nodes. The gradient of a bias is fused into
/// a kernel that already has dy in registers. If there is none, it is fused with the weight gradient, which
/// reads dy once more.
inline constexpr fusion forward_fusions[]{
    {{&linear, "u x w"}, {&bias, "y u b"}, {&linear_bias, "y x w b"}},
    {{&linear, "u x w"}, {&gelu, "y u"}, {&linear_gelu, "y u x w"}},
    {{&linear_bias, "u x w b"}, {&gelu, "y u"}, {&linear_bias_gelu, "y u x w b"}},
    {{&linear, "u x w"}, {&add, "y u r"}, {&linear_add, "y x w r"}},
    {{&linear_bias, "u x w b"}, {&add, "y u r"}, {&linear_bias_add, "y x w b r"}},
    {{&bias, "u x b"}, {&add, "y u r"}, {&bias_add, "y x b r"}},
    {{&add, "s x r"}, {&layer_norm, "y t s gain shift"}, {&add_layer_norm, "s y t x r gain shift"}},
    {{&bias_add, "s x b r"},
     {&layer_norm, "y t s gain shift"},
     {&bias_add_layer_norm, "s y t x b r gain shift"}},
    {{&add, "s x r"}, {&rms_norm, "y t s gain"}, {&add_rms_norm, "s y t x r gain"}},
    {{&row_max, "top logits"},
     {&exp_sums, "sums logits top targets"},
     {&softmax_sums, "top sums logits targets"}}};
inline constexpr fusion backward_fusions[]{
    {{&linear_dx, "u dy w"}, {&gelu_grad, "dx u before"}, {&linear_dx_gelu, "dx dy w before"}},
    {{&linear_dx_gelu, "dx dy w before"}, {&bias_grad, "db dx"}, {&linear_dx_gelu_bias, "dx db dy w before"}},
    {{&layer_norm_dx, "dx dy x t gain"},
     {&layer_norm_dw, "dgain dshift dy x t"},
     {&layer_norm_grad, "dx dgain dshift dy x t gain"}},
    {{&layer_norm_grad, "u dgain dshift dy x t gain"},
     {&add, "dx u r"},
     {&layer_norm_grad_add, "dx dgain dshift dy x t gain r"}},
    {{&layer_norm_grad_add, "dx dgain dshift dy x t gain r"},
     {&bias_grad, "db r"},
     {&layer_norm_grad_add_bias, "dx dgain dshift db dy x t gain r"}},
    {{&rms_norm_dx, "dx dy x t gain"},
     {&rms_norm_dw, "dgain dy x t"},
     {&rms_norm_grad, "dx dgain dy x t gain"}},
    {{&head_norm_dx, "dx dy x t gain"},
     {&head_norm_dw, "dgain dy x t"},
     {&head_norm_grad, "dx dgain dy x t gain"}},
    {{&rms_norm_grad, "u dgain dy x t gain"},
     {&add, "dx u r"},
     {&rms_norm_grad_add, "dx dgain dy x t gain r"}},
    {{&cross_entropy_grad, "u sums"},
     {&exp_sums_grad, "dl u logits top targets"},
     {&softmax_grad, "dl sums logits top targets"}},
    {{&masked_cross_entropy_grad, "u sums targets count"},
     {&exp_sums_grad, "dl u logits top targets"},
     {&masked_softmax_grad, "dl sums logits top targets count"}},
    {{&weighted_cross_entropy_grad, "u sums targets weights count"},
     {&exp_sums_grad, "dl u logits top targets"},
     {&weighted_softmax_grad, "dl sums logits top targets weights count"}},
    {{&linear_dw, "dw dy x"}, {&bias_grad, "db dy"}, {&linear_dw_bias, "dw db dy x"}},
    {{&expert_down, "u x w offsets"}, {&add, "y u r"}, {&expert_down_add, "y x w offsets r"}},
    {{&expert_down_add, "y x w offsets u"},
     {&expert_down, "u x2 w2 offsets"},
     {&expert_down_two, "y x w x2 w2 offsets"}}};

/// A forward node and a backward node that reads only operands and results of the forward node. In a training
/// step forward runs the fused op. Evaluation runs the forward node alone.
inline constexpr fusion fusions_across[]{
    {{&softmax_sums, "top sums logits targets"},
     {&softmax_grad, "dl sums logits top targets"},
     {&softmax_sums_grad, "dl sums logits targets"}},
    {{&softmax_sums, "top sums logits targets"},
     {&masked_softmax_grad, "dl sums logits top targets count"},
     {&masked_softmax_sums_grad, "dl sums logits targets count"}},
    {{&softmax_sums, "top sums logits targets"},
     {&weighted_softmax_grad, "dl sums logits top targets weights count"},
     {&weighted_softmax_sums_grad, "dl sums logits targets weights count"}}};

constexpr void each_fusion(auto visit) {
  for (const fusion& f : forward_fusions) visit(f);
  for (const fusion& f : backward_fusions) visit(f);
  for (const fusion& f : fusions_across) visit(f);
}

}  // namespace rankc::ops
