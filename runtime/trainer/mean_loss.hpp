// SPDX-License-Identifier: Apache-2.0
// The mean loss, without router losses, of samples that need not fill whole batches.
#pragma once
#include <rankc/runtime/placement.hpp>
#include <rankc/trainer/data.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace rankc::runtime {

/// The mean loss of labels, the router losses, and the number of dropped picks.
/// Units: labels: nats per token.
struct evaluated_loss {
  double labels = 0, routers = 0, dropped = 0;
};

/// Evaluates the engine's current batch. All processes call it and get the same result. `labels` includes the
/// router losses if the program keeps no router statistics.
evaluated_loss evaluate_apart(engine&, const placement& = {});

/// A note if router losses are included in the loss; else empty.
std::string note_on_router_losses(const description&);

/// Evaluates the engine's current batch. `batch` counts from 0.
using evaluate_batch = std::function<evaluated_loss(std::uint64_t batch)>;

/// Evaluates samples 0 to `samples` - 1 and returns the mean loss of their labels that count, each counted
/// once. The last batch is padded with copies of one sample. A batch of that sample alone measures the loss
/// and the dropped picks of the copies, which are subtracted. Router losses are averaged over batches,
/// weighted by samples; those of the last batch include the copies. If labels have weights, the mean is
/// weighted by them. Empty if no label counts.
std::optional<evaluated_loss> mean_loss(engine&, const read_sample&, std::uint64_t samples,
                                        const evaluate_batch&);

/// The number of samples in `batches` batches, at most `all`; `all` is empty for endless data.
std::uint64_t samples_in(const description&, std::int64_t batches, std::optional<std::uint64_t> all);

}  // namespace rankc::runtime
