// SPDX-License-Identifier: Apache-2.0
// The router statistics of a step: how evenly experts were chosen, and the values of the router losses.
#pragma once
#include <rankc/runtime/engine.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rankc::runtime {

/// Router statistics of a step.
/// load: for each layer with a router, the picks of its most chosen expert divided by the mean of all
/// experts.
/// balance: a mean over microbatches, without the coefficient. With evenly chosen experts it is top_k, or the
/// number of layers with a router if each layer has a balance loss.
/// dropped: for each layer with a router, the picks whose expert was full; empty if experts have no capacity
/// limit.
/// z: a mean over microbatches and tokens of the squared log-sum-exp of the logits, summed over layers,
/// without the coefficient.
struct router_metrics {
  std::vector<double> load;
  double balance = 0;
  std::vector<std::int64_t> dropped{};
  double z = 0;
};

/// The statistics of the last step; empty if the program keeps none, or this process lacks the rank that
/// keeps them.
std::optional<router_metrics> read_routers(engine&);

/// True if the loss of a step contains router losses.
bool has_router_losses(const description&);

/// True if a rank has the statistics of all routers and microbatches of a step. Without them are
/// programs with router_losses.local, and those with a pipeline in two directions.
bool keeps_routers(const description&);

/// The router losses that the loss of a step contains.
double router_losses_of(const description&, const router_metrics&);

/// A sentence on the picks that the last step dropped, if the plan rejects such a step. Empty if none was
/// dropped, or this process lacks the rank that counts.
std::string overflow_of(engine&);

}  // namespace rankc::runtime
