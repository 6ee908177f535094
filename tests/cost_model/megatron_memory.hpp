// SPDX-License-Identifier: Apache-2.0
// The memory of a step of Megatron-LM (core of 2025), with the distributed optimizer, fused attention and
// Transformer Engine's layers.
#pragma once
#include <rankc/lowering/layer.hpp>
#include <rankc/memory/memory.hpp>
#include <rankc/schedule/timing.hpp>

#include <algorithm>
#include <vector>

namespace rankc::cost_model {

namespace detail {

/// Counts the bytes that the ranks at one pipeline coordinate allocate at their peak. Units: bytes.
class megatron_counter {
 public:
  constexpr megatron_counter(const std::vector<lowering::layer_program>& layers, const parallel_dims& d)
      : layers_(layers), d_(d) {}

  constexpr void add_stage(const std::vector<int>& forms) {
    ++stages_;
    for (const int f : forms) add_layer(f);
  }
  /// Shapes: `in_flight` microbatches of one stage.
  constexpr double at_peak(int in_flight) const {
    return parameters_ + unused_ + kept_ / stages_ * in_flight + most_;
  }

 private:
  constexpr void add_layer(int form) {
    const lowering::layer_program& l = layers_[static_cast<std::size_t>(form)];
    const bool is_new = std::find(forms_.begin(), forms_.end(), form) == forms_.end(),
               has_products = l.x_bytes > 0;
    for (const lowering::layer_parameter& w : l.parameters) {
      if (!w.shared || std::find(shared_.begin(), shared_.end(), w.name) == shared_.end())
        parameters_ += of(w);
      if (w.shared) shared_.push_back(w.name);
      if (is_new && has_products && w.ndim == 2) unused_ += 2 * static_cast<double>(w.elements());
    }
    forms_.push_back(form);
    if (l.uses(lowering::phase::forward, lowering::space::loss)) {
      most_ = std::max(most_, 2 * kept(l));  // logits and their gradient
    } else {
      kept_ += kept(l);
      most_ = std::max(most_, static_cast<double>(l.backward_temp));
    }
  }

  /// The bytes of a weight: 6 per element for bf16 and its f32 gradient, and per shard 12 for two moments and
  /// the f32 weight.
  static constexpr double of(const lowering::layer_parameter& w) {
    const auto elements = static_cast<double>(w.elements());
    return 6 * elements + 12 * elements / w.shards;
  }
  /// The bytes that a microbatch saves: the layer's input and rankc's saved values. tp's all-gathered values
  /// are not saved; backward gathers them again.
  constexpr double kept(const lowering::layer_program& l) const {
    auto bytes = static_cast<double>(l.saved_bytes + l.x_bytes);
    for (const lowering::node& n : l.forward) {
      if (n.row->converts != conversion::all_gather || n.over != axis::tp) continue;
      n.each_write([&](const lowering::port_use& u) {
        const lowering::value& v = l.values[static_cast<std::size_t>(u.at.value)];
        if (v.where == lowering::space::saved) bytes -= static_cast<double>(v.bytes) * (d_.tp - 1) / d_.tp;
      });
    }
    return bytes;
  }

  const std::vector<lowering::layer_program>& layers_;
  const parallel_dims& d_;
  double parameters_ = 0, kept_ = 0;
  double unused_ = 0;  // scratch gradients for GEMMs that accumulate elsewhere, once per kind of layer
  double most_ = 0;    // temporary memory while a layer runs
  int stages_ = 0;
  std::vector<int> forms_;
  std::vector<parameter_name> shared_;
};

}  // namespace detail

/// Peak bytes of the ranks at each pipeline coordinate, without the memory of CUDA and NCCL.
/// Shapes: `layers` are the plan's forms, lowered for CUDA; the result is (pp). Units: allocated bytes.
/// Source: github.com/NVIDIA/Megatron-LM, DistributedOptimizer; github.com/NVIDIA/TransformerEngine,
/// get_dummy_wgrad.
constexpr std::vector<double> megatron_memory(const plan_data& plan,
                                              const std::vector<lowering::layer_program>& layers) {
  const std::vector<std::vector<int>> forms = forms_of_stages(plan);
  const std::vector<int> in_flight = total(plan.actions, plan.expected).peak_activations;
  std::vector<double> all;
  for (int rank = 0; rank < plan.dims.pp; ++rank) {
    detail::megatron_counter counter(layers, plan.dims);
    for (int stage = 0; stage < plan.actions.stages(); ++stage)
      if (plan.actions.has_stage(rank, stage)) counter.add_stage(forms[static_cast<std::size_t>(stage)]);
    all.push_back(counter.at_peak(in_flight[static_cast<std::size_t>(rank)]));
  }
  return all;
}

}  // namespace rankc::cost_model
