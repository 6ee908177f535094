// SPDX-License-Identifier: Apache-2.0
// Evaluation and embedding of models without tokens.
#include <doctest/doctest.h>

#include "../../runtime/trainer/mean_loss.hpp"
#include <rankc/runtime/host/embedded.hpp>

#include "run.hpp"

namespace encoders_evaluation_test {

using namespace rankc::runtime;

namespace {

const registered& whole(const std::string& job) {
  return *std::find_if(host_registry.begin(), host_registry.end(),
                       [&](const registered& p) { return p.job == job && p.layout == "one"; });
}

/// The values of a sample's inputs, by its number.
void write_sample(const description& about, std::uint64_t sample, const sample_view& to) {
  const std::vector<input_row> rows = inputs_of(about);
  for (std::size_t k = 0; k < rows.size(); ++k)
    for (std::size_t i = 0; i < count_of_sample(about, rows[k]); ++i) {
      const std::uint64_t drawn = ((sample + 1) * 1009 + i) * 2654435761u >> 8;
      to.inputs[k][i] = rows[k].type == input_type::index
                            ? static_cast<double>(drawn % static_cast<std::uint64_t>(rows[k].below))
                            : static_cast<double>(drawn % 1000) / 1000;
    }
}

}  // namespace

TEST_CASE("a model without tokens is evaluated over all samples, each once") {
  for (const char* job : {"vit", "regression"}) {
    CAPTURE(std::string(job));
    run r(whole(job));
    const auto evaluate = [&](std::uint64_t) { return evaluate_apart(*r.engine); };
    const auto loss_of = [&](std::uint64_t first, std::uint64_t samples) {
      const auto loss = mean_loss(
          *r.engine, [&](std::uint64_t s, const sample_view& to) { write_sample(r.about, first + s, to); },
          samples, evaluate);
      REQUIRE(loss);
      return loss->labels;
    };
    const std::uint64_t samples = static_cast<std::uint64_t>(r.about.global_batch()) + 3;
    double sum = 0;
    for (std::uint64_t s = 0; s < samples; ++s) sum += loss_of(s, 1);
    const double mean = sum / static_cast<double>(samples);
    CHECK(mean > 0);
    CHECK(std::abs(loss_of(0, samples) - mean) <= 1e-12 * mean);
  }
}

TEST_CASE("a model without tokens is embedded, and its steps are those of an engine") {
  for (const char* job : {"vit", "regression"}) {
    CAPTURE(std::string(job));
    const registered& program = whole(job);
    run r(program);
    embedded here;
    REQUIRE(embed(*std::get<const rankc::host::program*>(program.program),
                  rankc::host::surroundings{.rank = 0}, here)
                .ok());
    initialise(*here.inside(), 1);
    for (int m = 0; m < r.about.microbatches; ++m) {
      std::vector<run::given_input> given = r.inputs_of_microbatch(0, m);
      std::vector<named_array> arrays;
      for (const run::given_input& i : given) arrays.push_back({i.name, i.values});
      const status set = here.set_batch(m, {}, {}, arrays);
      CHECK_MESSAGE(set.ok(), set.text);
      const std::vector<std::int32_t> tokens(r.about.tokens_of_microbatch());
      CHECK(std::string(here.set_batch(m, {}, tokens, arrays).text).starts_with("RC5000: "));
    }
    const auto& t = r.about.train;
    const step_output expected = r.step();
    step_output out;
    REQUIRE(here.step({r.lr, t.weight_decay, t.clip, t.beta1, t.beta2, t.eps, 1}, out).ok());
    CHECK(out.loss == expected.loss);
    CHECK(out.grad_norm == expected.grad_norm);
  }
}

}  // namespace encoders_evaluation_test
