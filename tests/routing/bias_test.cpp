// SPDX-License-Identifier: Apache-2.0
// Biases of experts' scores, in f64: they affect the choice; only the experts' loads change them, and in the
// same way on any layout.
#include <rankc/trainer/router_metrics.hpp>

#include "between_layouts.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace bias_test {

using rankc::runtime::region;

namespace {

constexpr int picks = 2, experts = 6;
constexpr double rate = 0.001;

bool is_bias(const std::string& name) { return name.ends_with("router.bias"); }

tensors biases_of(const tensors& all) {
  tensors some;
  for (const auto& [name, values] : all)
    if (is_bias(name)) some.emplace(name, values);
  return some;
}

/// Source: Wang et al. 2024, algorithm 1: b += u sign(mean of the numbers of choices - an expert's).
double moved(double bias, double choices, double mean) {
  const double error = mean - choices;
  return bias + rate * ((error > 0) - (error < 0));
}

void write_bias(run& r, int expert, double value) {
  for (const auto& p : rankc::runtime::global_parameters(r.about))
    if (is_bias(p.name))
      rankc::runtime::write(*r.engine, p, region::weights, [&](std::size_t first, std::span<double> out) {
        for (std::size_t i = 0; i < out.size(); ++i)
          out[i] = static_cast<int>(first + i) == expert ? value : 0;
      });
}

}  // namespace

TEST_CASE("the load of experts is of the choices that move biases, and the same on all layouts") {
  std::map<std::string, std::vector<double>> loads;
  int programs = 0, limited = 0;
  for (const registered& program : host_registry) {
    run r(program, "arith", 1e-3);
    r.step();
    const auto routers = rankc::runtime::read_routers(*r.engine);
    REQUIRE(routers.has_value() ==
            (program.job.starts_with("counted") || program.job.starts_with("limited")));
    if (!routers) continue;
    CAPTURE(program.job);
    CAPTURE(program.layout);
    CHECK(routers->load == loads.try_emplace(program.job, routers->load).first->second);
    CHECK(routers->load.size() == 4);
    for (double load : routers->load) CHECK((load >= 1 && load <= 1.0 * experts / picks));
    ++programs;
    if (!program.job.starts_with("limited")) continue;
    CHECK(routers->dropped.size() == 4);
    for (const auto& [name, choices] : biases_of(r.tensors(region::gradients))) {
      const double all = std::accumulate(choices.begin(), choices.end(), 0.0),
                   most = *std::max_element(choices.begin(), choices.end());
      CHECK(all == r.about.global_batch() * r.about.seq * picks);
      CHECK(std::count(routers->load.begin(), routers->load.end(), most * experts / all) > 0);
      ++limited;
    }
  }
  CHECK(programs == expected_of(programs, 14));
  CHECK(limited == expected_of(limited, 7 * 4));
}

TEST_CASE(
    "biases after each of five steps are those that the numbers of choices make, and the same on all "
    "layouts") {
  std::map<std::string, tensors> on_one;
  int programs = 0, moves = 0;
  for (const registered& program : host_registry) {
    run r(program, "arith", 1e-3);
    tensors expected = biases_of(r.tensors(region::weights));
    if (expected.empty()) continue;
    CAPTURE(program.job);
    CAPTURE(program.layout);
    REQUIRE(expected.size() == 4);
    const double tokens = r.about.global_batch() * r.about.seq;
    for (int step = 0; step < 5; ++step) {
      const auto output = r.step();
      const tensors gradients = r.tensors(region::gradients);
      double squares = 0;
      for (const auto& [name, values] : gradients)
        for (double g : values) squares += is_bias(name) ? 0 : g * g;
      CHECK(std::abs(output.grad_norm - std::sqrt(squares)) <= 1e-12 * output.grad_norm);
      for (auto& [name, bias] : expected) {
        const std::vector<double>& choices = gradients.at(name);
        double sum = 0;
        for (std::size_t e = 0; e < experts; ++e) {
          CHECK(choices[e] == std::round(choices[e]));
          CHECK(choices[e] <= tokens);
          sum += choices[e];
          bias[e] = moved(bias[e], choices[e], tokens * picks / experts);
          moves += choices[e] != tokens * picks / experts;
        }
        CHECK(sum == tokens * picks);
      }
      CHECK(biases_of(r.tensors(region::weights)) == expected);
    }
    for (const auto& [name, moment] : biases_of(r.tensors(region::second_moment)))
      CHECK(std::all_of(moment.begin(), moment.end(), [](double m) { return m == 0; }));
    if (program.layout == "one") on_one[program.job] = expected;
    CHECK(expected == on_one.at(program.job));
    ++programs;
  }
  CHECK(on_one.size() == 3);
  CHECK(programs == expected_of(programs, 35));
  CHECK(moves > 29 * programs);
}

TEST_CASE("an expert with a large bias is chosen for every token, and one with a low one for none") {
  for (const registered& program : host_registry) {
    run r(program, "arith", 0);
    if (biases_of(r.tensors(region::weights)).empty()) continue;
    CAPTURE(program.job);
    CAPTURE(program.layout);
    const double tokens = r.about.global_batch() * r.about.seq;
    for (const auto& [value, choices] : {std::pair(100.0, tokens), {-100.0, 0.0}}) {
      write_bias(r, 5, value);
      r.step();
      for (const auto& [name, counts] : biases_of(r.tensors(region::gradients))) CHECK(counts[5] == choices);
    }
  }
}

TEST_CASE("biases balance what routers choose") {
  for (const registered& program : host_registry) {
    if (program.layout != "one") continue;
    run with(program, "arith", 0);
    if (biases_of(with.tensors(region::weights)).empty()) continue;
    CAPTURE(program.job);
    const auto worst_load = [&] {
      with.steps = 0;  // take the same batch
      with.step();
      double most = 0;
      for (const auto& [name, counts] : biases_of(with.tensors(region::gradients)))
        most = std::max(most, *std::max_element(counts.begin(), counts.end()));
      return most;
    };
    const double before = worst_load();
    for (int n = 0; n < 100; ++n) worst_load();
    const double after = worst_load();
    CHECK(after < before);
    MESSAGE("most choices of an expert: " << before << ", and after 100 steps of its bias " << after);
  }
}

TEST_CASE("plans with biases load each other's checkpoints bit for bit") {
  between_layouts::save_and_load(
      between_layouts::programs_of("both", {"one", "padded", "tp2", "cp2", "zbv", "ep2_sp"}), 6);
}

}  // namespace bias_test
