// SPDX-License-Identifier: Apache-2.0
#include "mean_loss.hpp"

#include "shared_text.hpp"

#include <rankc/runtime/failure.hpp>
#include <rankc/runtime/named_inputs.hpp>
#include <rankc/runtime/parse.hpp>
#include <rankc/trainer/router_metrics.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

namespace rankc::runtime {
namespace {

/// Reads samples `first` to `end` - 1 into the first sequences of a batch, and pads the rest with sample
/// `end` - 1.
batch read_some(const description& about, const read_sample& read, std::uint64_t first, std::uint64_t end) {
  return read_batch(about,
                    [&](std::uint64_t i, const sample_view& to) { read(std::min(first + i, end - 1), to); });
}

/// The weights of a batch's labels; empty if labels have none.
std::span<const double> weights_of(const description& about, const batch& b) {
  const std::vector<input_row> inputs = inputs_of(about);
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (has_weights_of_labels(about, inputs[i])) return b.inputs[i];
  return {};
}

/// The sum of the weights of a batch's labels, divided by their number. Without weights it is the share of
/// labels that count. Models without tokens have no labels to ignore.
double share_of_labels(const description& about, const batch& b) {
  if (b.targets.empty() || !(about.ignores_labels() || about.token_weights)) return 1;
  const std::span<const double> weights = weights_of(about, b);
  double sum = 0;
  for (std::size_t i = 0; i < b.targets.size(); ++i)
    if (b.targets[i] != about.ignored_label) sum += weights.empty() ? 1 : weights[i];
  return sum / static_cast<double>(b.targets.size());
}

/// The router losses and the number of dropped picks, as text; empty if another process has the statistics.
std::string own_routers(engine& e) {
  const std::optional<router_metrics> routers = read_routers(e);
  if (!routers) return "";
  const std::int64_t dropped =
      std::accumulate(routers->dropped.begin(), routers->dropped.end(), std::int64_t{0});
  return fmt::format("{} {}", router_losses_of(e.about(), *routers), dropped);
}

/// The sum of the losses of labels, and their number or the sum of their weights. Units: labels of a batch.
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

evaluated_loss evaluate_apart(engine& e, const placement& where) {
  evaluated_loss loss{.labels = e.evaluate()};
  if (!keeps_routers(e.about())) return loss;
  const std::string told = first_of_all(where, "router losses", own_routers(e));
  const std::size_t space = told.find(' ');
  loss.routers = parse_number<double>(told.substr(0, space)).value();
  loss.dropped = parse_number<double>(told.substr(space + 1)).value();
  loss.labels -= loss.routers;
  return loss;
}

std::string note_on_router_losses(const description& about) {
  if (!has_router_losses(about) || keeps_routers(about)) return "";
  return say(
      "RC6272: evaluated losses are those of labels plus the router losses of the plan {}: a plan with "
      "router_losses.local, or with a pipeline in two directions, keeps no statistics that tell them apart",
      about.name);
}

std::optional<evaluated_loss> mean_loss(engine& e, const read_sample& read, std::uint64_t samples,
                                        const evaluate_batch& evaluate) {
  const auto size = static_cast<std::uint64_t>(e.about().global_batch());
  std::uint64_t batches = 0;
  batch_sums labels;
  evaluated_loss all;
  const auto add = [&](std::uint64_t first, std::uint64_t end, double times, std::uint64_t counted) {
    const batch b = read_some(e.about(), read, first, end);
    set_batch(e, b);
    const evaluated_loss loss = evaluate(batches++);
    labels.add(loss.labels, share_of_labels(e.about(), b), times);
    all.dropped += times * loss.dropped;
    all.routers += static_cast<double>(counted) / static_cast<double>(samples) * loss.routers;
  };
  const std::uint64_t whole = samples / size * size, rest = samples - whole;
  for (std::uint64_t first = 0; first < whole; first += size) add(first, first + size, 1, size);
  if (rest > 0) {
    add(whole, samples, 1, rest);
    add(samples - 1, samples, -static_cast<double>(size - rest) / static_cast<double>(size), 0);
  }
  if (labels.labels == 0) return std::nullopt;
  all.labels = labels.loss / labels.labels;
  return all;
}

}  // namespace rankc::runtime
