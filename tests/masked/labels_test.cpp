// SPDX-License-Identifier: Apache-2.0
// Ignored labels in programs: a loss recomputed from those of single labels, steps in which no label counts,
// and labels that are refused.
#include <rankc/runtime/embedded.hpp>
#include <rankc/runtime/host/embedded.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "../../runtime/trainer/mean_loss.hpp"
#include "../said.hpp"
#include "run.hpp"

namespace masked_labels_test {

namespace {

using namespace rankc::runtime;
using rankc::test::said;
using rankc::test::said_by;

const registered& find_program(const std::string& job) {
  return *std::find_if(host_registry.begin(), host_registry.end(),
                       [&](const registered& p) { return p.job == job && p.layout == "one"; });
}

void ignore_all(run& r) {
  batch b = r.next_batch();
  std::ranges::fill(b.targets, r.about.ignored_label);
  set_batch(*r.engine, b);
}

}  // namespace

TEST_CASE("the loss is the sum of the labels' losses divided by their number, beside the losses of routers") {
  for (const std::string job : {"llama", "experts", "packed", "two_losses"}) {
    CAPTURE(job);
    run r(find_program(job));
    ignore_all(r);
    const double of_routers = r.engine->evaluate();
    CHECK((of_routers > 0) == (job == "experts"));
    const batch all = r.next_batch();
    double sum = 0;
    int labels = 0;
    for (std::size_t i = 0; i < all.targets.size(); ++i) {
      if (all.targets[i] == r.about.ignored_label) continue;
      batch one = all;
      std::ranges::fill(one.targets, r.about.ignored_label);
      one.targets[i] = all.targets[i];
      set_batch(*r.engine, one);
      sum += r.engine->evaluate() - of_routers;
      ++labels;
    }
    CHECK(labels > 20);
    CHECK(labels < static_cast<int>(all.targets.size()) - 20);
    set_batch(*r.engine, all);
    CHECK(std::abs(r.engine->evaluate() - of_routers - sum / labels) <= 1e-11);
  }
}

TEST_CASE("a step in which no label counts changes no weight and no moment, and no later step") {
  for (const registered& program : host_registry) {
    if (program.job == "llama" || program.job == "tied") continue;  // oracle_test covers such steps
    CAPTURE(program.job);
    CAPTURE(program.layout);
    run r(program, "arith", 1e-2), without(program, "arith", 1e-2);
    r.step();
    without.step();
    std::vector<tensors> before, after;
    for (const region w : {region::weights, region::first_moment, region::second_moment})
      before.push_back(r.tensors(w));
    ignore_all(r);
    const step_output out = r.update();
    CHECK(out.is_skipped);
    CHECK(out.grad_norm == 0);
    CHECK(std::isfinite(out.loss));
    for (const region w : {region::weights, region::first_moment, region::second_moment})
      after.push_back(r.tensors(w));
    CHECK((before == after));
    set_batch(*r.engine, without.next_batch());
    const step_output next = r.update(), expected = without.step();
    CHECK(next.loss == expected.loss);
    CHECK((r.tensors(region::weights) == without.tensors(region::weights)));
  }
}

TEST_CASE("an evaluation is the mean over the labels of all samples, each counted once") {
  run r(find_program("llama"));
  const auto seq = static_cast<std::size_t>(r.about.seq);
  const auto read = [&](std::uint64_t s, const sample_view& to) {
    r.data.sample(s, to);
    for (std::size_t i = 0; i < seq; ++i)
      if (i % 7 < s % 5) to.targets[i] = r.about.ignored_label;
  };
  const auto evaluate = [&](std::uint64_t) { return evaluate_apart(*r.engine); };
  constexpr std::uint64_t samples = 10;  // two batches of four, and two samples more
  double sum = 0, labels = 0, of_means = 0;
  for (std::uint64_t s = 0; s < samples; ++s) {
    std::vector<std::int32_t> tokens(seq), targets(seq);
    read(s, {tokens.data(), targets.data()});
    const auto counted = static_cast<double>(static_cast<std::ptrdiff_t>(seq) -
                                             std::ranges::count(targets, r.about.ignored_label));
    const auto alone = [&](std::uint64_t, const sample_view& to) { read(s, to); };
    set_batch(*r.engine, read_batch(r.about, alone));
    const double mean = r.engine->evaluate();
    sum += mean * counted;
    labels += counted;
    of_means += mean / samples;
  }
  const double found = mean_loss(*r.engine, read, samples, evaluate)->labels;
  CHECK(std::abs(found - sum / labels) <= 1e-12);
  CHECK(std::abs(found - of_means) > 1e-6);
  const auto nothing = [&](std::uint64_t s, const sample_view& to) {
    read(s, to);
    std::fill_n(to.targets, seq, r.about.ignored_label);
  };
  CHECK(!mean_loss(*r.engine, nothing, samples, evaluate));
}

TEST_CASE("a label is a token or the ignored label") {
  const registered& program = find_program("packed");
  embedded here;
  REQUIRE(embed(*std::get<const rankc::host::program*>(program.program), rankc::host::surroundings{.rank = 0},
                here)
              .ok());
  const std::size_t count = program.about->tokens_of_microbatch();
  std::vector<std::int32_t> tokens(count, 1), labels(count, -1);
  CHECK(here.set_batch(0, tokens, labels).ok());
  for (const std::int32_t wrong : {-100, -2, 32}) {
    labels[7] = wrong;
    const status refused = here.set_batch(0, tokens, labels);
    CHECK(refused.code == 1);
    CHECK(std::string(refused.text) == "RC5075: element 7 of targets is " + std::to_string(wrong) +
                                           "; a label is a token, 0 to 31, or the ignored label -1");
  }
  labels[7] = -1;
  tokens[7] = -1;
  CHECK(std::string(here.set_batch(0, tokens, labels).text) ==
        "RC5004: element 7 of tokens is -1; the vocabulary has 0 to 31");
}

}  // namespace masked_labels_test
