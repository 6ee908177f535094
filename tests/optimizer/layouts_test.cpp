// SPDX-License-Identifier: Apache-2.0
// An optimizer's program leaves the same state on any layout as on one rank. Stochastically rounded state is
// equal bit for bit.
#include <doctest/doctest.h>

#include <cmath>

#include "run.hpp"

namespace layouts_test {

namespace {

using rankc::runtime::region;

struct result {
  tensors weights, first, second;
};
constexpr int steps = 5;

/// Train. Lion moves the biases of keys by the whole learning rate: their gradient is 0, and the sign of its
/// rounding differs between layouts. No score depends on them, so they are left out.
result train(const registered& program) {
  run r(program, "arith", 0.01);
  for (int n = 0; n < steps; ++n) r.step();
  result out{r.tensors(region::weights), {}, {}};
  if (program.job == "lion")
    std::erase_if(out.weights, [](const auto& w) { return w.first.ends_with("wk.bias"); });
  if (r.about.moments > 0) out.first = r.tensors(region::first_moment);
  if (r.about.moments > 1) out.second = r.tensors(region::second_moment);
  return out;
}

/// The largest difference, relative to the largest value of each tensor.
double difference(const tensors& want, const tensors& got) {
  REQUIRE(want.size() == got.size());
  double most = 0;
  for (const auto& [name, values] : want) {
    const double size = largest({{name, values}});
    for (std::size_t i = 0; i < values.size(); ++i)
      most = std::max(most, std::abs(values[i] - got.at(name)[i]) / std::max(size, 1e-3));
  }
  return most;
}

/// Whether the bits are equal. A bias of keys only shifts a row of scores, so its gradient is pure rounding,
/// which must be tiny.
bool same_bits(const tensors& want, const tensors& got) {
  bool all = want.size() == got.size();
  for (const auto& [name, values] : want)
    all &= name.ends_with("wk.bias") ? largest({{name, values}}) < 1e-12 : values == got.at(name);
  return all;
}

bool is_llama(const registered& program) { return program.layout.starts_with("llama"); }

}  // namespace

TEST_CASE("parameters after five steps are those of one rank") {
  int compared = 0;
  double worst = 0;
  for (const registered& alone : host_registry) {
    if (!alone.layout.ends_with("one")) continue;
    const result want = train(alone);
    CHECK(largest(want.weights) > 0.1);
    for (const registered& program : host_registry) {
      if (program.job != alone.job || is_llama(program) != is_llama(alone) || program.layout == alone.layout)
        continue;
      CAPTURE(program.job);
      CAPTURE(program.layout);
      const result got = train(program);
      const double found = difference(want.weights, got.weights);
      CHECK(found <= 1e-10);
      worst = std::max(worst, found);
      if (program.about->bf16_moments) {
        CHECK(same_bits(want.first, got.first));
        CHECK(same_bits(want.second, got.second));
      } else {
        CHECK(difference(want.first, got.first) <= 1e-10);
        CHECK(difference(want.second, got.second) <= 1e-10);
      }
      ++compared;
    }
  }
  CHECK(compared == expected_of(compared, 5 * 11 + 8));
  MESSAGE("largest difference " << worst);
}

TEST_CASE("other seeds and other steps round otherwise") {
  const auto find = [](const std::string& job) -> const registered& {
    return *std::find_if(host_registry.begin(), host_registry.end(),
                         [&](const registered& p) { return p.job == job && p.layout == "one"; });
  };
  run r(find("adamw_stochastic")), other(find("adamw_stochastic"));
  const auto& t = r.about.train;
  const auto step = [&](run& of, std::uint32_t seed, int number) {
    of.load();
    of.engine->step({0, 0, 0, t.beta1, t.beta2, t.eps, number, 0, false, seed});
    return of.tensors(region::first_moment);
  };
  const auto started_afresh = [&](std::uint32_t seed, int number) {
    run fresh(find("adamw_stochastic"));
    return step(fresh, seed, number);
  };
  const tensors first = step(r, 5, 1);
  CHECK((step(other, 5, 1) == first));
  CHECK((started_afresh(6, 1) != first));
  CHECK((started_afresh(5, 2) != first));
}

}  // namespace layouts_test
