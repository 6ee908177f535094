// SPDX-License-Identifier: Apache-2.0
#include "mean_loss.hpp"

#include <rankc/runtime/failure.hpp>

#include <algorithm>

namespace rankc::runtime {
namespace {

/// Reads samples `first` to `end` - 1 into the first sequences of a batch, and sample `end` - 1 into the
/// others.
batch read_some(const description& about, const read_sample& read, std::uint64_t first, std::uint64_t end) {
  return read_batch(about,
                    [&](std::uint64_t i, const sample_view& to) { read(std::min(first + i, end - 1), to); });
}

/// The share of a batch's labels that count. Models without tokens have no labels to ignore.
double share_of_labels(const description& about, const batch& b) {
  if (!about.ignores_labels()) return 1;
  const auto ignored = std::ranges::count(b.targets, about.ignored_label);
  return 1 - static_cast<double>(ignored) / static_cast<double>(b.targets.size());
}

/// The sum of the losses of labels, and their number. Units: labels of a batch.
struct batch_sums {
  double loss = 0, labels = 0;
  void add(double mean, double share, double times) {
    loss += times * share * mean;
    labels += times * share;
  }
};

}  // namespace

std::uint64_t samples_in(const description& about, std::int64_t batches, std::optional<std::uint64_t> all) {
  const auto most = static_cast<std::uint64_t>(batches) * static_cast<std::uint64_t>(about.global_batch());
  return std::min(most, all.value_or(most));
}

double mean_loss(engine& e, const read_sample& read, std::uint64_t samples, const evaluate_batch& evaluate) {
  const auto size = static_cast<std::uint64_t>(e.about().global_batch());
  std::uint64_t batches = 0;
  batch_sums all;
  const auto add = [&](std::uint64_t first, std::uint64_t end, double times) {
    const batch b = read_some(e.about(), read, first, end);
    set_batch(e, b);
    all.add(evaluate(batches++), share_of_labels(e.about(), b), times);
  };
  const std::uint64_t whole = samples / size * size, rest = samples - whole;
  for (std::uint64_t first = 0; first < whole; first += size) add(first, first + size, 1);
  if (rest > 0) {
    add(whole, samples, 1);
    add(samples - 1, samples, -static_cast<double>(size - rest) / static_cast<double>(size));
  }
  if (all.labels == 0) throw failure(1, "RC6175: no label of the {} samples counts in the loss", samples);
  return all.loss / all.labels;
}

}  // namespace rankc::runtime
