// SPDX-License-Identifier: Apache-2.0
// The cost of a layer on its rank, from the rows of its ops.
#pragma once
#include <rankc/mesh/dims.hpp>
#include <rankc/ops/linear.hpp>
#include <rankc/stages/plan_data.hpp>
#include <rankc/trace/trace.hpp>

namespace rankc {

/// Floating-point operations of a layer's forward.
/// Units: per token.
/// Source: PaLM (Chowdhery et al. 2022), appendix B.
constexpr double forward_flops(const trace& layer) {
  double total = 0;
  for (std::size_t i = 0; i < layer.forward_ops; ++i)
    total +=
        layer.ops[i].kind->flops_of(sizes_of(layer, layer.ops[i])) / layer.values[layer.input].shape[0].size;
  return total;
}

/// The forward operations of GEMMs with weights that are not trained.
constexpr double frozen_flops(const trace& layer) {
  double total = 0;
  for (std::size_t i = 0; i < layer.forward_ops; ++i) {
    const op& o = layer.ops[i];
    const int w = o.kind == &ops::linear ? layer.find_parameter(o.in[1]) : -1;
    if (w >= 0 && !layer.weights[static_cast<std::size_t>(w)].trainable)
      total += o.kind->flops_of(sizes_of(layer, o)) / layer.values[layer.input].shape[0].size;
  }
  return total;
}

/// Floating-point operations of a model. Backward is twice forward, without the gradients of frozen weights.
/// Shapes: (kinds), each traced on one device, where no expert slot is without a token.
/// Units: per token.
constexpr double flops_per_token(const std::vector<layer_kind>& kinds,
                                 const std::vector<trace>& on_one_device) {
  double total = 0;
  for (std::size_t k = 0; k < kinds.size(); ++k)
    total += kinds[k].count * (3 * forward_flops(on_one_device[k]) - frozen_flops(on_one_device[k]));
  return total;
}

/// The operations of a GPU in the time in which it reads or writes one element.
/// Source: NVIDIA H200 datasheet, 989 TFLOP/s of two-byte elements and 4.8 TB/s.
inline constexpr double operations_per_element = 412;

/// The cost of one op on a rank: the larger of its operations and the operations possible in the time of its
/// memory traffic. Weights, which are read once for many rows, and communication are not counted. Degrees
/// must be known.
/// Units: operations of a microbatch.
constexpr double cost_of(const trace& layer, const op& o, const parallel_dims& d) {
  if (o.kind->converts != conversion::none) return 0;
  const dim& tokens = layer.values[layer.input].shape[0];
  double elements = 0;
  int most_shards = 1;
  const auto add = [&](int id) {
    if (id < 0) return;
    const type& v = layer.values[id];
    int shards = 1;
    for (axis a : axes)
      if (v[a].k == placement::V) shards *= d.*row(a).degree;
    if (shards > most_shards) most_shards = shards;
    if (v.ndim > 0 && v.shape[0] == tokens)
      elements += static_cast<double>(tokens.size) * (v.ndim > 1 ? v.shape[1].size : 1) / shards;
  };
  for (int id : o.in) add(id);
  for (int id : o.out) add(id);
  const double operations = o.kind->flops_of(sizes_of(layer, o)) / most_shards,
               passing = operations_per_element * elements;
  return operations > passing ? operations : passing;
}

/// The cost of a layer.
/// Units: operations of a rank for each token of the microbatch. Integers, so that equal costs are equal on
/// all machines.
struct layer_cost {
  long long forward = 0, backward = 0;
  /// At least 1, so that layers without ops are spread like others.
  constexpr long long in(bool inference) const {
    const long long all = inference ? forward : forward + backward;
    return all > 0 ? all : 1;
  }
};
constexpr layer_cost cost_of(const trace& layer, const parallel_dims& d) {
  double passes[2]{};
  for (std::size_t i = 0; i < layer.ops.size(); ++i)
    passes[i >= layer.forward_ops] += cost_of(layer, layer.ops[i], d);
  const double tokens = layer.values[layer.input].shape[0].size;
  return {static_cast<long long>(passes[0] / tokens + 0.5), static_cast<long long>(passes[1] / tokens + 0.5)};
}

}  // namespace rankc
