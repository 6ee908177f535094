// SPDX-License-Identifier: Apache-2.0
// The mean loss of a number of samples that need not fill whole batches.
#pragma once
#include <rankc/trainer/data.hpp>

#include <cstdint>
#include <functional>
#include <optional>

namespace rankc::runtime {

/// Evaluates the batch that the engine has been given. `batch` counts from 0.
using evaluate_batch = std::function<double(std::uint64_t batch)>;

/// Evaluates samples 0 to `samples` - 1 and returns the mean loss of their labels that count, each counted
/// once. The last batch is filled up with copies of one sample; their loss, measured by a batch of that
/// sample alone, is subtracted.
/// Units: nats per token.
/// Errors: failure (1) if no label counts.
double mean_loss(engine&, const read_sample&, std::uint64_t samples, const evaluate_batch&);

/// The number of samples in `batches` batches, at most `all`; all empty: data without an end.
std::uint64_t samples_in(const description&, std::int64_t batches, std::optional<std::uint64_t> all);

}  // namespace rankc::runtime
