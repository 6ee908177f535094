// SPDX-License-Identifier: Apache-2.0
#include <rankc/cost_model/kernel_time.hpp>
#include <rankc/recipe/optimizers.hpp>

#include <algorithm>
#include <cmath>
#include <functional>

#include "calibrate.hpp"

namespace rankc::tool {

namespace {

using cost_model::gpu_speed;

constexpr double lasting = 2e-3;  // seconds: power limits GEMMs that take longer

bool is_product(const timed_kernel& k) {
  return k.name == "linear" || k.name == "linear_dx" || k.name == "linear_dw";
}
bool has_bias(const timed_kernel& k) { return k.name == "linear_bias" || k.name == "linear_dx_gelu_bias"; }
bool writes_two(const timed_kernel& k) { return k.name == "linear_bias_gelu"; }
bool is_attention(const timed_kernel& k) { return k.name.starts_with("attention"); }
bool sums_columns(const timed_kernel& k) { return k.name == "layer_norm_grad_add"; }
bool sweeps(const timed_kernel& k) {
  const auto updates = [&](const optimizer_row* row) { return row->name == k.name; };
  return k.name == "sum_squares" || std::ranges::any_of(optimizer_rows, updates);
}

double epilogue_factor(const gpu_speed& g, const timed_kernel& k) {
  if (writes_two(k)) return g.two_results;
  return has_bias(k) ? g.with_bias : 1;
}

double product_seconds(const gpu_speed& g, const timed_kernel& k) {
  const bool dx = k.name.starts_with("linear_dx"), dw = k.name == "linear_dw";
  long long m = k.tokens, n = k.out, depth = k.in;
  if (dx) {
    n = k.in;
    depth = k.out;
  }
  if (dw) {
    m = k.out;
    n = k.in;
    depth = k.tokens;
  }
  const double written = static_cast<double>(m) * static_cast<double>(n),
               read = static_cast<double>(m + n) * static_cast<double>(depth);
  // dw is in f32. The other GEMMs write or read a second tensor of the result's size.
  const bool twice = dw || writes_two(k) || k.name == "linear_dx_gelu_bias";
  return cost_model::product_time(g, m, n, depth, 2 * read + (twice ? 4 : 2) * written,
                                  epilogue_factor(g, k));
}

double attention_seconds(const gpu_speed& g, const timed_kernel& k) {
  const bool backward = k.name == "attention_grad";
  const double one = 2.0 * static_cast<double>(k.rows * k.seq) * static_cast<double>(k.seq) *
                     static_cast<double>(k.heads * k.dim);
  return (backward ? g.backward : g.forward)[k.dim <= 64 ? 0 : 1].time(one * (backward ? 2.5 : 1),
                                                                       static_cast<double>(k.seq));
}

/// Lowers a loss by scaling positive constants, one after the other, until no scaling helps. Source: Hooke
/// and Jeeves 1961.
void search(const std::vector<double*>& constants, const std::function<double()>& loss) {
  std::vector<double> steps(constants.size(), 0.2);
  double best = loss();
  for (int round = 0; round < 200; ++round) {
    double widest = 0;
    for (std::size_t i = 0; i < constants.size(); ++i) {
      const double kept = *constants[i];
      bool helps = false;
      for (const double sign : {1.0, -1.0}) {
        *constants[i] = kept * std::exp(sign * steps[i]);
        if (const double now = loss(); now < best) {
          best = now;
          helps = true;
          break;
        }
        *constants[i] = kept;
      }
      steps[i] *= helps ? 1.2 : 0.6;
      widest = std::max(widest, steps[i]);
    }
    if (widest < 1e-4) break;
  }
}

/// Fits constants to every other row of some kernels. The loss is the sum of the logarithms of the errors: a
/// prediction n times too long counts like one n times too short.
void fit_to(const timed_gpu& t, const gpu_speed& g, bool (*is_of)(const timed_kernel&), int dim,
            const std::vector<double*>& constants) {
  std::vector<const timed_kernel*> rows;
  bool every_other = false;
  for (const timed_kernel& k : t.kernels)
    if (is_of(k) && (dim == 0 || k.dim == dim) && (is_attention(k) || k.seconds < lasting || k.bytes > 0))
      if ((every_other = !every_other)) rows.push_back(&k);
  search(constants, [&] {
    double off = 0;
    for (const timed_kernel* k : rows) off += std::abs(std::log(predicted(g, *k) / k->seconds));
    return g.products > g.peak ? 1e9 : off;  // no rate is above the stated peak
  });
}

/// The energy of a load above rest. Units: joules of a call.
double joules(const gpu_speed& g, const timed_load& l) { return (l.watts - g.rest) * l.seconds; }

void fit_power(const timed_gpu& t, gpu_speed& g) {
  const auto mean_of = [&](const char* load, int dim, double joules_of_byte) {
    double sum = 0;
    int loads = 0;
    for (const timed_load& l : t.loads) {
      if (l.name != load || l.dim != dim) continue;
      sum += (joules(g, l) - l.bytes * joules_of_byte) / (l.operations > 0 ? l.operations : l.bytes);
      ++loads;
    }
    return loads ? sum / loads : 0;
  };
  for (const timed_load& l : t.loads)
    if (l.name == "rest") g.rest = l.watts;
  g.joules_of_byte = mean_of("pass", 0, 0);
  g.joules_of_product = mean_of("product", 0, g.joules_of_byte) * g.in_steps;
  for (const int dim : {64, 128}) {
    g.forward[dim / 128].joules = mean_of("attention", dim, g.joules_of_byte);
    g.backward[dim / 128].joules = mean_of("attention_grad", dim, g.joules_of_byte);
  }
}

}  // namespace

double predicted(const gpu_speed& g, const timed_kernel& k) {
  if (is_product(k) || has_bias(k) || writes_two(k)) return product_seconds(g, k);
  if (is_attention(k)) return attention_seconds(g, k);
  if (k.bytes <= 0) return 0;
  if (sums_columns(k)) return g.column_sums.time(k.bytes);
  return (sweeps(k) ? g.sweeps : g.passes).time(k.bytes);
}

gpu_speed fit(const timed_gpu& t, gpu_speed g) {
  g.processors = t.processors;
  g.products = 0.9 * g.peak;
  g.product_start = 3e-6;
  g.tile_start = 4e-7;
  g.narrow_tile = 0.02;
  g.stores_beside = 0.3;
  g.split_sums = 0.03;
  g.with_bias = g.two_results = 0.9;
  for (cost_model::attention_speed* s : {g.forward, g.backward})
    for (int heads = 0; heads < 2; ++heads)
      s[heads] = {.start = 1e-5, .per_second = g.peak / 2, .half_at = 500, .joules = 0};
  g.passes = {2e-6, 4e12};
  g.column_sums = {8e-6, 3e12};
  g.sweeps = {4e-6, 4e12};
  const auto passes = [](const timed_kernel& k) { return k.bytes > 0 && !sums_columns(k) && !sweeps(k); };
  fit_to(t, g, passes, 0, {&g.passes.start, &g.passes.per_second});
  fit_to(t, g, sums_columns, 0, {&g.column_sums.start, &g.column_sums.per_second});
  fit_to(t, g, sweeps, 0, {&g.sweeps.per_second});
  fit_to(t, g, is_product, 0,
         {&g.products, &g.product_start, &g.tile_start, &g.narrow_tile, &g.stores_beside, &g.split_sums});
  fit_to(t, g, has_bias, 0, {&g.with_bias});
  fit_to(t, g, writes_two, 0, {&g.two_results});
  for (const int dim : {64, 128})
    for (const bool backward : {false, true}) {
      cost_model::attention_speed& s = (backward ? g.backward : g.forward)[dim / 128];
      fit_to(t, g,
             backward ? [](const timed_kernel& k) { return k.name == "attention_grad"; }
                      : [](const timed_kernel& k) { return k.name == "attention"; },
             dim, {&s.start, &s.per_second, &s.half_at});
    }
  fit_power(t, g);
  return g;
}

}  // namespace rankc::tool
