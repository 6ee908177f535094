// SPDX-License-Identifier: Apache-2.0
// RC261: a recipe with fp8 linear layers needs such layers, and a GPU with fp8 GEMMs.
#pragma once
#include <rankc/recipe/cluster.hpp>
#include <rankc/base/diagnostic.hpp>
#include <rankc/recipe/training.hpp>
#include <rankc/ops/linear.hpp>
#include <rankc/lowering/local_shape.hpp>

namespace rankc::detail {

/// True if an op is a linear layer that can run in fp8: it is neither a router's nor LoRA's, and its sizes
/// are multiples of 16 on each rank.
constexpr bool is_fp8_linear(const trace& t, const op& o, const parallel_dims& d) {
  if (o.kind != &ops::linear || t.values[o.out[0]].bad) return false;
  const int weight = t.find_parameter(o.in[1]);
  const bool is_plain = weight >= 0 && t.weights[static_cast<std::size_t>(weight)].name.part.empty() &&
                        t.values[o.in[1]].shape[0].name != "experts";
  return is_plain && lowering::fits_fp8(lowering::local(t.values[o.in[0]], d)) &&
         lowering::fits_fp8(lowering::local(t.values[o.in[1]], d));
}

/// True if a layer has a linear layer that can run in fp8.
constexpr bool has_fp8_linear(const trace& t, const parallel_dims& d) {
  for (std::size_t i = 0; i < t.forward_ops; ++i)
    if (is_fp8_linear(t, t.ops[i], d)) return true;
  return false;
}

/// RC261. `any`: some repeated layer has a linear layer that can run in fp8.
constexpr void check_linears(report& out, const training& r, const cluster& machines, bool any) {
  if (r.linears == linear_precision::plain) return;
  const std::string_view name = linear_precision_names[static_cast<int>(r.linears)];
  if (machines.gpu == "a100")
    refuse(out, 261) << "linears=" << name
                     << ", but an a100 has no fp8 tensor cores; leave it out, or take clusters::h100, h200"
                     << (r.linears == fp8 ? ", b200 or gb200" : "");
  if (r.linears == fp8_rows && (machines.gpu == "b200" || machines.gpu == "gb200"))
    refuse(out, 261) << "linears=fp8_rows, but cuBLASLt has no GEMM with a scale for each row on a "
                     << machines.gpu << "; take linears=fp8";
  if (!any)
    refuse(out, 261) << "linears=" << name
                     << ", and no linear layer of a repeated layer has multiples of 16 of tokens, inputs and "
                        "outputs on each rank; "
                        "leave it out, or take such sizes";
}

}  // namespace rankc::detail
