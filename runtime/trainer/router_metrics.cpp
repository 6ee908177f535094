// SPDX-License-Identifier: Apache-2.0
#include <rankc/contract/router.hpp>
#include <rankc/trainer/router_metrics.hpp>

#include <fmt/ranges.h>
#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

namespace rankc::runtime {

namespace {

/// The sums of one or several microbatches. Shapes: (layers, kinds, experts).
struct router_sums {
  std::size_t layers, experts;
  std::vector<double> all;
  double choices(std::size_t layer, std::size_t expert) const {
    return all[kinds_of_statistics * layer * experts + expert];
  }
  double scores(std::size_t layer, std::size_t expert) const {
    return all[(kinds_of_statistics * layer + 1) * experts + expert];
  }
  double squares(std::size_t layer) const { return all[(kinds_of_statistics * layer + 2) * experts]; }
  std::int64_t dropped(std::size_t layer) const {
    return std::llround(all[(kinds_of_statistics * layer + 2) * experts + 1]);
  }
  double choices_of(std::size_t layer) const {
    double sum = 0;
    for (std::size_t e = 0; e < experts; ++e) sum += choices(layer, e);
    return sum;
  }
};

/// Source: transformers, load_balancing_loss_func.
double balance_of_all(const router_sums& s, double tokens) {
  double sum = 0;
  for (std::size_t e = 0; e < s.experts; ++e) {
    double choices = 0, scores = 0;
    for (std::size_t l = 0; l < s.layers; ++l) {
      choices += s.choices(l, e);
      scores += s.scores(l, e);
    }
    sum += choices * scores;
  }
  const double all = tokens * static_cast<double>(s.layers);
  return static_cast<double>(s.experts) * sum / (all * all);
}
/// Summed over layers.
/// Source: Megatron-LM, switch_load_balancing_loss_func.
double balance_of_each(const router_sums& s, double tokens) {
  double sum = 0;
  for (std::size_t l = 0; l < s.layers; ++l)
    for (std::size_t e = 0; e < s.experts; ++e) sum += s.choices(l, e) * s.scores(l, e) / s.choices_of(l);
  return static_cast<double>(s.experts) * sum / tokens;
}

/// Source: ST-MoE, the router z-loss.
double mean_squares(const router_sums& s, double tokens) {
  double sum = 0;
  for (std::size_t l = 0; l < s.layers; ++l) sum += s.squares(l);
  return sum / tokens;
}

std::vector<double> loads_of(const router_sums& s) {
  std::vector<double> load;
  for (std::size_t l = 0; l < s.layers; ++l) {
    double most = 0;
    for (std::size_t e = 0; e < s.experts; ++e) most = std::max(most, s.choices(l, e));
    load.push_back(most * static_cast<double>(s.experts) / s.choices_of(l));
  }
  return load;
}

}  // namespace

bool keeps_routers(const description& about) { return layout_of(about, reporter_of(about)).routers.rows > 0; }

std::optional<router_metrics> read_routers(engine& e) {
  const description& about = e.about();
  const int rank = reporter_of(about);
  if (!keeps_routers(about) || !e.holds(rank)) return std::nullopt;
  const routers_place& kept = layout_of(about, rank).routers;
  const auto experts = static_cast<std::size_t>(kept.experts);
  const std::size_t layers = static_cast<std::size_t>(kept.rows) / kinds_of_statistics;
  router_sums one{layers, experts, std::vector<double>(static_cast<std::size_t>(kept.rows) * experts)},
      all = one;
  const double tokens = static_cast<double>(about.tokens_of_microbatch()) * about.dp;
  router_metrics m;
  for (int microbatch = 0; microbatch < about.microbatches; ++microbatch) {
    e.routers(rank, microbatch, one.all.data());
    std::transform(one.all.begin(), one.all.end(), all.all.begin(), all.all.begin(), std::plus<>());
    m.balance += (kept.of_each_layer ? balance_of_each(one, tokens) : balance_of_all(one, tokens)) /
                 about.microbatches;
    m.z += mean_squares(one, tokens) / about.microbatches;
  }
  m.load = loads_of(all);
  for (std::size_t layer = 0; kept.limited && layer < layers; ++layer)
    m.dropped.push_back(all.dropped(layer));
  return m;
}

bool has_router_losses(const description& about) {
  const routers_place& kept = layout_of(about, reporter_of(about)).routers;
  return kept.balance != 0 || kept.z != 0;
}

double router_losses_of(const description& about, const router_metrics& m) {
  const routers_place& kept = layout_of(about, reporter_of(about)).routers;
  return kept.balance * m.balance + kept.z * m.z;
}

std::string overflow_of(engine& e) {
  const description& about = e.about();
  if (!layout_of(about, reporter_of(about)).routers.fails) return "";
  const std::optional<router_metrics> m = read_routers(e);
  if (!m) return "";
  const std::int64_t dropped = std::accumulate(m->dropped.begin(), m->dropped.end(), std::int64_t{0});
  if (dropped == 0) return "";
  return fmt::format(
      "{} picks found their expert full (of each layer with experts: {}), and the plan says overflow=fail",
      dropped, fmt::join(m->dropped, ", "));
}

}  // namespace rankc::runtime
