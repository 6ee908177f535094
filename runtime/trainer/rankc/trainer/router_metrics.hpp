// SPDX-License-Identifier: Apache-2.0
// What the routers of a step did: how evenly experts were chosen, and the balance that the plan has a loss
// of.
#pragma once
#include <rankc/runtime/engine.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rankc::runtime {

/// load: of each layer that has a router, how often its most chosen expert was chosen, in the mean of all.
/// balance: a mean over microbatches, without its coefficient: k of k picks, or 1 where it is of each layer,
/// when experts are chosen alike. dropped: of each such layer, how many picks found their expert full; empty
/// where experts take all. z: a mean over microbatches, without its coefficient, of the mean over tokens of
/// the squared log-sum-exps of logits, summed over layers.
struct router_metrics {
  std::vector<double> load;
  double balance = 0;
  std::vector<std::int64_t> dropped{};
  double z = 0;
};

/// Of the last step; nothing where a program keeps none, or this process has not the rank that does.
std::optional<router_metrics> read_routers(engine&);

/// Whether the loss of a step contains losses of routers.
bool has_router_losses(const description&);

/// Whether this process has the statistics of the routers of a step.
bool keeps_routers(const engine&);

/// The losses of routers that the loss of a step contains.
double router_losses_of(const description&, const router_metrics&);

/// How many picks the last step had no room for, where the plan does not apply such a step; empty where it
/// had none, or this process has not the rank that counts.
std::string overflow_of(engine&);

}  // namespace rankc::runtime
