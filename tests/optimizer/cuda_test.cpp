// SPDX-License-Identifier: Apache-2.0
// Programs for GPUs with moments, weights or both in bf16: every step follows the optimizer's formulas, each
// stored number is a bf16 neighbour of the exact result, and losses fall.
#include <rankc/runtime/bf16.hpp>

#include "steps.hpp"

namespace {

using optimizing::region;

/// Check that each step is the optimizer's, element by element, and that each bf16 number is a neighbour of
/// the exact one.
void check_updates(int gpus, int expected) {
  int programs = 0;
  for (const registered& program : cuda_registry) {
    if (program.about->world() != gpus) continue;
    CAPTURE(program.job);
    CAPTURE(program.layout);
    CHECK(optimizing::check_steps(program, 3, 1e-5) > 10'000);
    ++programs;
  }
  CHECK(programs == expected);
}

/// Check that losses fall, and AdamW's as with f32 weights.
void check_losses(int gpus) {
  // The learning rate at which the losses of an optimizer fall. Adagrad's rate decays with lr_decay 0.25.
  const auto rate = [](const std::string& optimizer) {
    if (optimizer.find("sgd") != std::string::npos) return 0.1;
    return optimizer == "adagrad" ? 3e-2 : 3e-3;
  };
  const auto losses = [&](const registered& program) {
    run r(program, "arith", rate(program.job));
    std::vector<double> all;
    for (int n = 0; n < 60; ++n) all.push_back(r.step().loss);
    return all;
  };
  double with_master = 0;
  for (const registered& program : cuda_registry) {
    if (program.about->world() != gpus) continue;
    CAPTURE(program.job);
    CAPTURE(program.layout);
    const std::vector<double> all = losses(program);
    CHECK(*std::min_element(all.begin(), all.end()) < 0.95 * all.front());
    if (program.layout != "one") continue;
    if (program.job == "adamw") with_master = all.back();
    else if (program.job != "lion" && program.job != "adagrad" &&
             program.job.find("sgd") == std::string::npos)
      CHECK(all.back() == doctest::Approx(with_master).epsilon(0.1));
  }
}

/// Check that weights without a master copy are read as they were written.
void check_reading(int gpus) {
  for (const registered& program : cuda_registry) {
    if (program.about->world() != gpus || !program.about->bf16_weights) continue;
    run r(program);
    const tensors weights = r.tensors(region::weights);
    for (const auto& p : rankc::runtime::global_parameters(r.about)) {
      const std::vector<double>& values = weights.at(p.name);
      rankc::runtime::write(*r.engine, p, region::weights, [&](std::size_t first, std::span<double> to) {
        std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(first), to.size(), to.begin());
      });
    }
    CHECK((r.tensors(region::weights) == weights));
    CHECK(largest(weights) > 0.9);  // norm gains are near 1
  }
}

const registered& find(const std::string& optimizer, const std::string& layout) {
  return *std::find_if(cuda_registry.begin(), cuda_registry.end(),
                       [&](const registered& p) { return p.job == optimizer && p.layout == layout; });
}

}  // namespace

TEST_CASE(
    "2 GPUs: gradients that are sent in bf16 are numbers of bf16, and those that f32 sums to its rounding") {
  for (const std::string layout : {"dp2", "shard2"}) {
    CAPTURE(layout);
    const registered &narrow = find("adamw_reduced", layout),
                     &wide = find("adamw_stochastic", layout);  // same gradients, another update
    run a(narrow), b(wide);
    a.step();
    b.step();
    const tensors found = a.tensors(region::gradients), expected = b.tensors(region::gradients);
    REQUIRE(found.size() == expected.size());
    std::size_t others = 0;
    for (const auto& [name, values] : expected) {
      CAPTURE(name);
      const double scale = largest({{name, values}});
      for (std::size_t i = 0; i < values.size(); ++i) {
        const double got = found.at(name)[i];
        // With one microbatch, the sum itself is sent in bf16. With two, each is sent, and they are added in
        // f32.
        if (layout == "dp2")
          CHECK(got == rankc::runtime::widened(rankc::runtime::rounded_to_nearest(static_cast<float>(got))));
        CHECK(std::abs(got - values[i]) <= 0.02 * scale);
        others += got != values[i];
      }
    }
    CHECK(others > 1000);
  }
}

TEST_CASE("1 GPU: each step is the optimizer's") { check_updates(1, 26); }
TEST_CASE("2 GPUs: each step is the optimizer's") { check_updates(2, 6); }
TEST_CASE("1 GPU: losses fall") { check_losses(1); }
TEST_CASE("2 GPUs: losses fall") { check_losses(2); }
TEST_CASE("1 GPU: weights without a master copy are read as they were written") { check_reading(1); }
TEST_CASE("2 GPUs: weights without a master copy are read as they were written") { check_reading(2); }
