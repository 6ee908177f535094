// SPDX-License-Identifier: Apache-2.0
// The measured and stated constants of a GPU by name, to print them and to compute the sensitivity of a
// prediction to each.
#pragma once
#include <rankc/cost_model/gpu_speed.hpp>

#include <string_view>

namespace rankc::tool {

/// The parts of a constant, such as "node.latency", follow each other. `digits`: the digits that are known.
struct speed_member {
  std::string_view name;
  int digits;
  double& (*of)(cost_model::gpu_speed&);
};

inline constexpr speed_member speed_members[]{
    {"peak", 4, [](cost_model::gpu_speed& g) -> double& { return g.peak; }},
    {"memory", 4, [](cost_model::gpu_speed& g) -> double& { return g.memory; }},
    {"products", 4, [](cost_model::gpu_speed& g) -> double& { return g.products; }},
    {"product_start", 4, [](cost_model::gpu_speed& g) -> double& { return g.product_start; }},
    {"tile_start", 4, [](cost_model::gpu_speed& g) -> double& { return g.tile_start; }},
    {"narrow_tile", 4, [](cost_model::gpu_speed& g) -> double& { return g.narrow_tile; }},
    {"stores_beside", 4, [](cost_model::gpu_speed& g) -> double& { return g.stores_beside; }},
    {"split_sums", 4, [](cost_model::gpu_speed& g) -> double& { return g.split_sums; }},
    {"with_bias", 4, [](cost_model::gpu_speed& g) -> double& { return g.with_bias; }},
    {"two_results", 4, [](cost_model::gpu_speed& g) -> double& { return g.two_results; }},
    {"forward.64.start", 3, [](cost_model::gpu_speed& g) -> double& { return g.forward[0].start; }},
    {"forward.64.per_second", 4, [](cost_model::gpu_speed& g) -> double& { return g.forward[0].per_second; }},
    {"forward.64.half_at", 4, [](cost_model::gpu_speed& g) -> double& { return g.forward[0].half_at; }},
    {"forward.64.joules", 3, [](cost_model::gpu_speed& g) -> double& { return g.forward[0].joules; }},
    {"forward.128.start", 3, [](cost_model::gpu_speed& g) -> double& { return g.forward[1].start; }},
    {"forward.128.per_second", 4,
     [](cost_model::gpu_speed& g) -> double& { return g.forward[1].per_second; }},
    {"forward.128.half_at", 4, [](cost_model::gpu_speed& g) -> double& { return g.forward[1].half_at; }},
    {"forward.128.joules", 3, [](cost_model::gpu_speed& g) -> double& { return g.forward[1].joules; }},
    {"backward.64.start", 3, [](cost_model::gpu_speed& g) -> double& { return g.backward[0].start; }},
    {"backward.64.per_second", 4,
     [](cost_model::gpu_speed& g) -> double& { return g.backward[0].per_second; }},
    {"backward.64.half_at", 4, [](cost_model::gpu_speed& g) -> double& { return g.backward[0].half_at; }},
    {"backward.64.joules", 3, [](cost_model::gpu_speed& g) -> double& { return g.backward[0].joules; }},
    {"backward.128.start", 3, [](cost_model::gpu_speed& g) -> double& { return g.backward[1].start; }},
    {"backward.128.per_second", 4,
     [](cost_model::gpu_speed& g) -> double& { return g.backward[1].per_second; }},
    {"backward.128.half_at", 4, [](cost_model::gpu_speed& g) -> double& { return g.backward[1].half_at; }},
    {"backward.128.joules", 3, [](cost_model::gpu_speed& g) -> double& { return g.backward[1].joules; }},
    {"passes.start", 3, [](cost_model::gpu_speed& g) -> double& { return g.passes.start; }},
    {"passes.per_second", 4, [](cost_model::gpu_speed& g) -> double& { return g.passes.per_second; }},
    {"column_sums.start", 3, [](cost_model::gpu_speed& g) -> double& { return g.column_sums.start; }},
    {"column_sums.per_second", 4,
     [](cost_model::gpu_speed& g) -> double& { return g.column_sums.per_second; }},
    {"sweeps.start", 3, [](cost_model::gpu_speed& g) -> double& { return g.sweeps.start; }},
    {"sweeps.per_second", 4, [](cost_model::gpu_speed& g) -> double& { return g.sweeps.per_second; }},
    {"step_start", 4, [](cost_model::gpu_speed& g) -> double& { return g.step_start; }},
    {"beside", 4, [](cost_model::gpu_speed& g) -> double& { return g.beside; }},
    {"joules_of_product", 4, [](cost_model::gpu_speed& g) -> double& { return g.joules_of_product; }},
    {"in_steps", 4, [](cost_model::gpu_speed& g) -> double& { return g.in_steps; }},
    {"joules_of_byte", 4, [](cost_model::gpu_speed& g) -> double& { return g.joules_of_byte; }},
    {"link_power", 4, [](cost_model::gpu_speed& g) -> double& { return g.link_power; }},
    {"power", 4, [](cost_model::gpu_speed& g) -> double& { return g.power; }},
    {"rest", 4, [](cost_model::gpu_speed& g) -> double& { return g.rest; }},
    {"node.latency", 3, [](cost_model::gpu_speed& g) -> double& { return g.node.latency; }},
    {"node.bandwidth", 4, [](cost_model::gpu_speed& g) -> double& { return g.node.bandwidth; }},
    {"node.message_bandwidth", 4,
     [](cost_model::gpu_speed& g) -> double& { return g.node.message_bandwidth; }},
    {"network.latency", 3, [](cost_model::gpu_speed& g) -> double& { return g.network.latency; }},
    {"network.bandwidth", 4, [](cost_model::gpu_speed& g) -> double& { return g.network.bandwidth; }},
    {"network.message_bandwidth", 4,
     [](cost_model::gpu_speed& g) -> double& { return g.network.message_bandwidth; }}};

}  // namespace rankc::tool
