// SPDX-License-Identifier: Apache-2.0
// Weights of labels in programs: a loss recomputed from those of single labels, weights of 0, steps whose
// weights are all 0, evaluation, and weights that are refused.
#include <rankc/runtime/embedded.hpp>
#include <rankc/runtime/host/embedded.hpp>
#include <rankc/runtime/named_inputs.hpp>
#include <rankc/trainer/command_line.hpp>
#include <rankc/trainer/generate.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "../../runtime/trainer/mean_loss.hpp"
#include "../packed/batch.hpp"
#include "../said.hpp"

namespace weighted_test {

namespace {

using namespace rankc::runtime;
using rankc::test::said;
using rankc::test::said_by;

const registered& find_program(const std::string& job, const std::string& layout = "one") {
  return *std::find_if(host_registry.begin(), host_registry.end(),
                       [&](const registered& p) { return p.job == job && p.layout == layout; });
}

/// The batch of the next step with drawn weights. Every fifth weight is 0.
batch weighted_batch(const run& r) {
  batch b = r.next_batch();
  std::vector<double>& weights = b.inputs.at(0);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const std::uint64_t number = packed::drawn(static_cast<std::uint64_t>(r.steps) * weights.size() + i, 7);
    weights[i] = number % 5 == 0 ? 0 : 0.25 + static_cast<double>(number % 1000) / 500;
  }
  return b;
}
batch without_weights(const run& r) {
  batch b = r.next_batch();
  std::ranges::fill(b.inputs.at(0), 0);
  return b;
}
double loss_of(run& r, const batch& b) {
  set_batch(*r.engine, b);
  return r.engine->evaluate();
}

}  // namespace

TEST_CASE("the loss is the sum of weight times loss by the sum of weights, beside the losses of routers") {
  for (const std::string job : {"llama", "every", "experts", "two_losses"}) {
    CAPTURE(job);
    run r(find_program(job));
    const double of_routers = loss_of(r, without_weights(r));
    CHECK((of_routers > 0) == (job == "experts"));
    const batch all = weighted_batch(r);
    double sum = 0, weights = 0;
    for (std::size_t i = 0; i < all.targets.size(); ++i) {
      const double weight = all.targets[i] == r.about.ignored_label ? 0 : all.inputs[0][i];
      if (weight == 0) continue;
      batch one = without_weights(r);
      one.inputs[0][i] = 1;
      sum += weight * (loss_of(r, one) - of_routers);
      weights += weight;
    }
    CHECK(weights > 20);
    CHECK(std::abs(loss_of(r, all) - of_routers - sum / weights) <= 1e-11);
  }
}

TEST_CASE("a label of weight 0 is an ignored label, and a factor of all weights changes nothing") {
  const registered& program = find_program("llama");
  run by_weight(program), by_label(program), doubled(program);
  for (run* r : {&by_weight, &by_label, &doubled}) {
    batch b = weighted_batch(*r);
    for (std::size_t i = 0; i < b.targets.size(); ++i) {
      if (r == &by_label && b.inputs[0][i] == 0) b.targets[i] = r->about.ignored_label;
      if (r == &by_label) b.inputs[0][i] += b.inputs[0][i] == 0;
      if (r == &doubled) b.inputs[0][i] *= 2;
    }
    set_batch(*r->engine, b);
  }
  const step_output expected = by_weight.update();
  CHECK(expected.grad_norm > 0);
  for (run* r : {&by_label, &doubled}) {
    CHECK(r->update().loss == expected.loss);
    CHECK((r->tensors(region::gradients) == by_weight.tensors(region::gradients)));
  }
}

TEST_CASE("a step whose weights are all 0 changes no weight and no moment, and no later step") {
  for (const registered& program : host_registry) {
    CAPTURE(program.job);
    CAPTURE(program.layout);
    run r(program, "arith", 1e-2), without(program, "arith", 1e-2);
    for (run* each : {&r, &without}) {
      set_batch(*each->engine, weighted_batch(*each));
      each->update();
    }
    std::vector<tensors> before, after;
    for (const region w : {region::weights, region::first_moment, region::second_moment})
      before.push_back(r.tensors(w));
    set_batch(*r.engine, without_weights(r));
    const step_output out = r.update();
    CHECK(out.is_skipped);
    CHECK(out.grad_norm == 0);
    CHECK(std::isfinite(out.loss));
    for (const region w : {region::weights, region::first_moment, region::second_moment})
      after.push_back(r.tensors(w));
    CHECK((before == after));
    for (run* each : {&r, &without}) set_batch(*each->engine, weighted_batch(without));
    const step_output next = r.update(), expected = without.update();
    CHECK(next.loss == expected.loss);
    CHECK((r.tensors(region::weights) == without.tensors(region::weights)));
  }
}

TEST_CASE("an evaluation is the weighted mean over the labels of all samples, each counted once") {
  run r(find_program("llama"));
  const auto seq = static_cast<std::size_t>(r.about.seq);
  const auto read = [&](std::uint64_t s, const sample_view& to) {
    r.data.sample(s, to);
    for (std::size_t i = 0; i < seq; ++i) {
      if (i % 7 < s % 5) to.targets[i] = r.about.ignored_label;
      to.inputs[0][i] = static_cast<double>((3 * i + s) % 4) / 2;
    }
  };
  const auto evaluate = [&](std::uint64_t) { return evaluate_apart(*r.engine); };
  constexpr std::uint64_t samples = 11;  // a batch of eight, and three samples more
  double sum = 0, weights = 0, of_means = 0;
  for (std::uint64_t s = 0; s < samples; ++s) {
    const batch b = read_batch(r.about, [&](std::uint64_t, const sample_view& to) { read(s, to); });
    double of_sample = 0;
    for (std::size_t i = 0; i < seq; ++i)
      if (b.targets[i] != r.about.ignored_label) of_sample += b.inputs[0][i];
    const double mean = loss_of(r, b);
    sum += mean * of_sample;
    weights += of_sample;
    of_means += mean / static_cast<double>(samples);
  }
  const double found = mean_loss(*r.engine, read, samples, evaluate)->labels;
  CHECK(std::abs(found - sum / weights) <= 1e-12);
  CHECK(std::abs(found - of_means) > 1e-6);
  const auto nothing = [&](std::uint64_t s, const sample_view& to) {
    read(s, to);
    std::fill_n(to.inputs[0], seq, 0);
  };
  CHECK(!mean_loss(*r.engine, nothing, samples, evaluate));
}

TEST_CASE("a weight is 0 or in its range, for an engine and for an embedded rank") {
  const registered& program = find_program("every");
  run r(program);
  embedded here;
  REQUIRE(embed(*std::get<const rankc::host::program*>(program.program), rankc::host::surroundings{.rank = 0},
                here)
              .ok());
  const std::size_t count = program.about->tokens_of_microbatch();
  const std::vector<std::int32_t> tokens(count, 1);
  std::vector<double> weights(count, 1);
  const named_array given[]{{"weights", weights}};
  for (const double legal : {0.0, 0x1p-100, 1e-30, 1e30, 0x1p100}) {
    weights[7] = legal;
    CHECK(here.set_batch(0, tokens, tokens, given).ok());
  }
  for (const double wrong : {-1.0, -1e-30, 1e-31, 1e31, std::numeric_limits<double>::infinity(),
                             std::numeric_limits<double>::quiet_NaN()}) {
    weights[7] = wrong;
    const said refused = said_by([&] { r.engine->set_inputs(0, 0, given); });
    CHECK(refused ==
          said{6262,
               {"7", "weights", refused.arguments.at(2), refused.arguments.at(3), refused.arguments.at(4)}});
    const status embedded_refuses = here.set_batch(0, tokens, tokens, given);
    CHECK(embedded_refuses.code == 1);
    CHECK(std::string(embedded_refuses.text).starts_with("RC6262: element 7 of input weights is "));
  }
  CHECK(std::string(here.set_batch(0, tokens, tokens).text).starts_with("RC5070: input weights is missing"));
}

TEST_CASE("a program says that labels have weights, and its commands take data with weights") {
  const description& about = *find_program("llama").about;
  CHECK(std::string(about.text)
            .find("labels have weights: the loss is the sum of weight x loss, over the sum "
                  "of weights of a step\n") != std::string::npos);
  CHECK(std::string(about.text).find("inputs: weights, a number of each token\n") != std::string::npos);
  CHECK(std::string(about.json).find("\"token_weights\":true") != std::string::npos);
  CHECK(said_by([&] { open_sources(parse_data_spec("arith:1"), about); }) ==
        said{6267, {"weighted_llama_one_host", "arith:1"}});
  const char* score[]{"program", "score", "--load", "folder", "--requests", "file"};
  CHECK(parse_command_line(about, 6, score).has_value());
}

TEST_CASE("the logits of a sequence do not depend on weights") {
  run r(find_program("every"));
  const std::vector<std::int32_t> tokens{1, 5, 3, 7};
  const std::vector<double> fresh = next_logits(*r.engine, tokens);
  set_batch(*r.engine, weighted_batch(r));
  r.engine->evaluate();
  CHECK(next_logits(*r.engine, tokens) == fresh);
}

}  // namespace weighted_test
