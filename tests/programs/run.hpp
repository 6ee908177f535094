// SPDX-License-Identifier: Apache-2.0
// A run of a generated program in a test: weights and data by hash, step by step.
#pragma once
#include "registry.hpp"

#include <rankc/runtime/named_inputs.hpp>
#include <rankc/trainer/data.hpp>
#include <rankc/trainer/parameters.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

/// The values of parameters, by name.
using tensors = std::map<std::string, std::vector<double>>;

inline double largest(const tensors& all) {
  double m = 0;
  for (const auto& [name, values] : all)
    for (double v : values) m = std::max(m, std::abs(v));
  return m;
}

/// Whether a parameter's gradient is the loss's. A router's bias has the number of choices instead.
inline bool is_of_loss(const std::string& name) { return !name.ends_with("router.bias"); }
inline tensors of_loss(tensors all) {
  std::erase_if(all, [](const auto& t) { return !is_of_loss(t.first); });
  return all;
}

struct run {
  explicit run(const registered& what, const std::string& source = "arith", double lr_ = 3e-4)
      : run(what, {}, source, lr_) {}
  run(const registered& what, const rankc::runtime::placement& where, const std::string& source = "arith",
      double lr_ = 3e-4)
      : engine(what.install(where)),
        lr(lr_),
        about(*what.about),
        data(rankc::runtime::parse_data_spec(source + ":1234"), std::max(about.vocab_used, 2), about.seq) {
    rankc::runtime::initialise(*engine, 1);
  }
  void load() {
    load([](const std::string&, double value) { return value; });
  }
  /// The same, with `change` applied to the inputs' values.
  void load(const auto& change) {
    if (rankc::runtime::reads_tokens(about)) rankc::runtime::set_batch(*engine, next_batch());
    if (rankc::runtime::inputs_of(about).empty()) return;
    for (int microbatch = 0; microbatch < about.microbatches; ++microbatch)
      for (int dp = 0; dp < about.dp; ++dp) {
        std::vector<given_input> given = inputs_of_microbatch(dp, microbatch);
        std::vector<rankc::runtime::named_array> arrays;
        for (given_input& i : given) {
          for (double& value : i.values) value = change(i.name, value);
          arrays.push_back({i.name, i.values});
        }
        engine->set_inputs(dp, microbatch, arrays);
      }
  }

  /// The batch of the next step. A program that ignores labels gets some ignored labels, by a hash of their
  /// position in the run; each row has another share of them.
  rankc::runtime::batch next_batch() const {
    const std::uint64_t samples = static_cast<std::uint64_t>(steps) * about.global_batch();
    rankc::runtime::batch b = rankc::runtime::read_batch(
        about, [&](std::uint64_t i, const rankc::runtime::sample_view& to) { data.sample(samples + i, to); });
    const auto seq = static_cast<std::uint64_t>(about.seq);
    for (std::size_t i = 0; about.ignores_labels() && i < b.targets.size(); ++i) {
      const std::uint64_t place = samples * seq + i, drawn = (place + 1) * 2654435761u >> 8;
      if (drawn % 8 < place / seq % 7) b.targets[i] = about.ignored_label;
    }
    return b;
  }

  struct given_input {
    std::string name;
    std::vector<double> values;
  };
  /// The inputs that the model declares, by a hash of the row in the run: numbers from 0.5 to 1.5, and
  /// indices below their limit.
  std::vector<given_input> inputs_of_microbatch(int dp, int microbatch) const {
    using namespace rankc::runtime;
    const auto step = static_cast<std::uint64_t>(steps),
               first = step * static_cast<std::uint64_t>(about.global_batch()) +
                       static_cast<std::uint64_t>((microbatch * about.dp + dp) * about.rows);
    const std::uint64_t rows_before[]{first * static_cast<std::uint64_t>(about.seq), first, step};
    std::vector<given_input> all;
    for (const input_row& row : inputs_of(about)) {
      given_input& i = all.emplace_back(row.name, std::vector<double>(count_values(about, row)));
      const std::uint64_t begin =
          rows_before[static_cast<int>(row.rows)] * static_cast<std::uint64_t>(row.width) + 17 * all.size();
      for (std::size_t k = 0; k < i.values.size(); ++k) {
        const std::uint64_t drawn = (begin + k) * 2654435761u >> 8;
        i.values[k] = row.type == input_type::index
                          ? static_cast<double>(drawn % static_cast<std::uint64_t>(row.below))
                          : 0.5 + static_cast<double>(drawn % 1000) / 1000;
      }
    }
    return all;
  }
  rankc::runtime::step_output step() {
    load();
    return update();
  }
  /// Run a step on the batch that the engine holds.
  rankc::runtime::step_output update() {
    const auto& t = about.train;
    const rankc::runtime::step_output out =
        engine->step({lr, t.weight_decay, t.clip, t.beta1, t.beta2, t.eps, ++steps, t.momentum, t.nesterov,
                      t.rounding_seed, skipped});
    skipped += out.is_skipped;
    return out;
  }
  /// The complete values of every parameter in a region, by name.
  std::map<std::string, std::vector<double>> tensors(rankc::runtime::region r) {
    std::map<std::string, std::vector<double>> out;
    for (const auto& p : rankc::runtime::global_parameters(about)) {
      if (!p.trained && r != rankc::runtime::region::weights) continue;
      std::vector<double>& values = out[p.name];
      values.resize(p.count());
      rankc::runtime::read(*engine, p, r, [&](std::size_t first, std::span<const double> v) {
        std::copy(v.begin(), v.end(), values.begin() + static_cast<std::ptrdiff_t>(first));
      });
    }
    return out;
  }

  std::unique_ptr<rankc::runtime::engine> engine;
  double lr;
  const rankc::runtime::description& about;
  rankc::runtime::dataset data;
  std::int64_t steps = 0, skipped = 0;
};
