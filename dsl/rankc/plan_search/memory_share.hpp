// SPDX-License-Identifier: Apache-2.0
// A rank's memory for a layer's parameters, before its layers are known.
#pragma once
#include <rankc/cost_model/step_time.hpp>
#include <rankc/plan_search/layers.hpp>

namespace rankc::plan_search {

/// A rank's memory for parameters, with these dims.
/// Units: bytes.
class memory_share {
 public:
  constexpr memory_share(const question& q, const lowering::layer_setting& s, const parallel_dims& d)
      : shards_(weight_shards(d)),
        expert_shards_(expert_weight_shards(d)),
        sums_over_replicas_(weight_replicas(d) > 1),
        passes_(reshards_after_layer(d)),
        real_(static_cast<double>(s.bytes(lowering::element_kind::real))),
        wide_(static_cast<double>(s.bytes(lowering::element_kind::wide))) {
    const lowering::optimizer_state kept = lowering::state_of(q.recipe, s.bytes(lowering::element_kind::real),
                                                              s.bytes(lowering::element_kind::wide), true);
    state_ = static_cast<double>(kept.weight) +
             static_cast<double>(kept.moments) * static_cast<double>(kept.moment) +
             (kept.working_copy ? real_ : 0) + wide_;
  }

  /// Adds a rank's average share of `layers` layers to `h`.
  constexpr void add(cost_model::detail::held& h, const parameter_elements& e, double layers) const {
    h.trained += layers * trained(e);
    h.gathered += layers * ((shards_ > 1 ? e.all : 0) + (expert_shards_ > 1 ? e.all_of_experts : 0));
    if (sums_over_replicas_) h.summed += layers * e.trained / shards_;
  }
  /// The memory that is always in use: the rank's shard of trained weights, their gradients and optimizer
  /// state, and the gathered weights if they are not freed after each layer.
  constexpr double kept(const parameter_elements& e) const {
    return trained(e) * state_ + (passes_ ? 0 : gathered(e));
  }
  /// The memory in use only while the layer is computed.
  constexpr double passing(const parameter_elements& e) const { return passes_ ? gathered(e) : 0; }

 private:
  constexpr double trained(const parameter_elements& e) const {
    return e.trained / shards_ + e.trained_of_experts / expert_shards_;
  }
  /// Full weights and their gradients.
  constexpr double gathered(const parameter_elements& e) const {
    return (shards_ > 1 ? e.all * real_ + e.trained * wide_ : 0) +
           (expert_shards_ > 1 ? e.all_of_experts * real_ + e.trained_of_experts * wide_ : 0);
  }

  double shards_, expert_shards_;
  bool sums_over_replicas_, passes_;
  double real_, wide_, state_ = 0;
};

}  // namespace rankc::plan_search
