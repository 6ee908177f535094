// SPDX-License-Identifier: Apache-2.0
// What a step of a plan takes and sends, by the compiler: step_time<plan>, tokens_per_second<plan>, mfu<plan>
// as predicted, and comm_bytes<plan>. The one include does not have it: it costs a compiler about as much
// again.
#pragma once
#include <rankc/recipe/cluster.hpp>
#include <rankc/cost_model/calibrations.hpp>
#include <rankc/cost_model/step_time.hpp>
#include <rankc/cost_model/traffic.hpp>
#include <rankc/peak_bytes.hpp>
#include <rankc/models/one_device.hpp>

namespace rankc {

namespace detail {

/// The plan's cluster must name a GPU that rankc knows; or say how fast yours is: step_time<plan, my_gpu>.
struct unknown_gpu {
  std::string_view name;
};

constexpr const cost_model::gpu_speed& speed_of(const cluster& machines) {
  if (const cost_model::gpu_speed* g = cost_model::find_speed(machines.gpu)) return *g;
  throw unknown_gpu{machines.gpu};
}

}  // namespace detail

/// A step of a plan on GPUs of a kind: those of its cluster, or others.
/// Units: seconds. Errors: not a constant where the plan breaks a rule, or its cluster names no GPU that
/// rankc knows.
template <const auto& Plan, const cost_model::gpu_speed& Gpu = detail::speed_of(Plan.cluster)>
inline constexpr cost_model::step_prediction predicted_step =
    [] { return cost_model::predict_step(detail::legal_data(Plan), Gpu); }();

template <const auto& Plan, const cost_model::gpu_speed& Gpu = detail::speed_of(Plan.cluster)>
inline constexpr double step_time = predicted_step<Plan, Gpu>.step;

/// Of all ranks together.
template <const auto& Plan, const cost_model::gpu_speed& Gpu = detail::speed_of(Plan.cluster)>
inline constexpr double tokens_per_second =
    static_cast<double>(Plan.recipe.global_batch) * Plan.recipe.seq / step_time<Plan, Gpu>;

/// The share of the GPUs' stated peak that the model's operations have.
/// Source: PaLM (Chowdhery et al. 2022), appendix B.
template <const auto& Plan, const cost_model::gpu_speed& Gpu = detail::speed_of(Plan.cluster)>
inline constexpr double mfu = [] {
  const plan_data p = detail::legal_data(Plan);
  const auto whole = trace_on_one_device(Plan.model, Plan.recipe, Plan.schedule.microbatches,
                                         static_cast<int>(batch_ranks(p.dims)));
  return tokens_per_second<Plan, Gpu> * flops_per_token(p.kinds, whole) / (Gpu.peak * p.dims.world);
}();

/// What the rank that sends most sends in a step, in a ring or to each other rank, but for the loss and the
/// norm; as
/// `describe` lists it. Of CUDA, where the plan's cluster has GPUs.
/// Units: bytes. Errors: not a constant where the plan breaks a rule.
template <const auto& Plan, target To = target_of(Plan.cluster)>
inline constexpr double comm_bytes = [] {
  const plan_data p = detail::legal_data(Plan);
  const lowering::layer_setting s = detail::setting_for(p, To);
  double most = 0;
  for (const cost_model::traffic& t : cost_model::traffic_of(p, lowering::lower_layers(p, s), s))
    most = std::max(most, t.all());
  return most;
}();

}  // namespace rankc
