// SPDX-License-Identifier: Apache-2.0
#include "mean_loss.hpp"

#include <algorithm>

namespace rankc::runtime {
namespace {

/// Reads samples `first` to `end` - 1 into the first sequences of a batch, and sample `end` - 1 into the
/// others.
batch read_some(const description& about, const read_sample& read, std::uint64_t first, std::uint64_t end) {
  return read_batch(about,
                    [&](std::uint64_t i, const sample_view& to) { read(std::min(first + i, end - 1), to); });
}

}  // namespace

std::uint64_t samples_in(const description& about, std::int64_t batches, std::optional<std::uint64_t> all) {
  const auto most = static_cast<std::uint64_t>(batches) * static_cast<std::uint64_t>(about.global_batch());
  return std::min(most, all.value_or(most));
}

double mean_loss(engine& e, const read_sample& read, std::uint64_t samples, const evaluate_batch& evaluate) {
  const auto size = static_cast<std::uint64_t>(e.about().global_batch());
  std::uint64_t batches = 0;
  const auto loss_of = [&](std::uint64_t first, std::uint64_t end) {
    set_batch(e, read_some(e.about(), read, first, end));
    return evaluate(batches++);
  };
  double sum = 0;  // of the samples' losses, in units of a batch
  const std::uint64_t whole = samples / size * size, rest = samples - whole;
  for (std::uint64_t first = 0; first < whole; first += size) sum += loss_of(first, first + size);
  if (rest == 0) return sum / static_cast<double>(batches);
  const double filled = loss_of(whole, samples), of_last = loss_of(samples - 1, samples),
               copies = static_cast<double>(size - rest) / static_cast<double>(size);
  sum += filled - copies * of_last;
  return sum * static_cast<double>(size) / static_cast<double>(samples);
}

}  // namespace rankc::runtime
