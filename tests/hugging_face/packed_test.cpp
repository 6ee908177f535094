// SPDX-License-Identifier: Apache-2.0
// Two sequences of an oracle, packed as two documents into one sequence, give transformers' results for each.
#include "models.hpp"

namespace packed_test {

using namespace hugging_face;
using rankc::runtime::region;

namespace {

/// The two sequences that a program packs. The first ends with the end-of-document token, which occurs
/// nowhere else.
struct packed {
  const char *model, *layout;
  int first, second;
};
constexpr packed pairs[]{
    {"gpt2", "0", 1, 0}, {"gpt2", "1", 2, 3}, {"llama_tied_bf16", "0", 1, 0}, {"llama_tied_bf16", "1", 2, 3}};

/// Sequences of the oracle: their tokens and their targets.
struct batch {
  std::vector<std::int32_t> tokens, targets;
};
batch batch_of(const run& oracle, const packed& p) {
  const auto seq = static_cast<std::size_t>(oracle.about.seq);
  batch b{std::vector<std::int32_t>(2 * seq), std::vector<std::int32_t>(2 * seq)};
  oracle.data.sample(static_cast<std::uint64_t>(p.first), b.tokens.data(), b.targets.data());
  oracle.data.sample(static_cast<std::uint64_t>(p.second), b.tokens.data() + seq, b.targets.data() + seq);
  return b;
}

/// Load the oracle's weights. Learned position tables get additional rows of large values, which no document
/// reaches.
void load_weights(run& to, run& oracle) {
  const tensors weights = oracle.tensors(region::weights);
  for (const auto& p : rankc::runtime::global_parameters(to.about)) {
    std::vector<double> values = weights.at(p.name);
    values.resize(p.count(), 100.0);
    rankc::runtime::write(*to.engine, p, region::weights, [&](std::size_t first, std::span<double> out) {
      std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(first), out.size(), out.begin());
    });
  }
}

}  // namespace

TEST_CASE("two sequences of an oracle, packed into one, have its losses, logits and gradients") {
  double worst_loss = 0, worst_logit = 0, worst_gradient = 0;
  int logits = 0;
  for (const char* model : {"gpt2", "llama_tied_bf16"}) {
    CAPTURE(model);
    const json expected = read_json(folder_of(model) / "expected.json");
    run oracle = start(program_of(model, "one"), folder_of(model),
                       "rand:" + std::to_string(expected["seed"].get<int>()));
    oracle.load();
    oracle.engine->evaluate();
    oracle.step();
    const tensors whole = oracle.tensors(region::gradients);
    rankc::runtime::load_weights(*oracle.engine, folder_of(model));
    oracle.steps = 0;
    oracle.load();
    oracle.engine->evaluate();
    double loss = 0;
    tensors gradients;
    for (const packed& p : pairs) {
      if (std::string(p.model) != model) continue;
      run both(program_of(std::string("packed_") + model, p.layout), "arith", 1e-2);
      load_weights(both, oracle);
      const batch b = batch_of(oracle, p);
      REQUIRE(b.tokens.size() == static_cast<std::size_t>(both.about.seq));
      REQUIRE(std::count(b.tokens.begin(), b.tokens.end(), both.about.end_of_document) == 1);
      REQUIRE(b.tokens[static_cast<std::size_t>(oracle.about.seq) - 1] == both.about.end_of_document);
      both.engine->set_batch(0, 0, b.tokens.data(), b.targets.data());
      loss += both.engine->evaluate() / 2;
      for (int n = 0; n < both.about.seq; ++n) {
        const int sequence = n < oracle.about.seq ? p.first : p.second, at = n % oracle.about.seq;
        std::vector<double> here(static_cast<std::size_t>(both.about.vocab_used)), there(here.size());
        both.engine->logits(0, static_cast<std::size_t>(n), here.data());
        oracle.engine->logits(0, static_cast<std::size_t>(sequence * oracle.about.seq + at), there.data());
        const json& given = expected["eval"]["logits"];
        if (sequence == 0 && given.contains(std::to_string(at))) {
          there = given[std::to_string(at)].get<std::vector<double>>();
          ++logits;
        }
        for (std::size_t k = 0; k < here.size(); ++k) {
          CHECK(std::abs(here[k] - there[k]) <= 1e-10);
          worst_logit = std::max(worst_logit, std::abs(here[k] - there[k]));
        }
      }
      const auto& t = both.about.train;
      both.engine->step({1e-2, t.weight_decay, t.clip, t.beta1, t.beta2, t.eps, 1, t.momentum, t.nesterov,
                         t.rounding_seed});
      for (const auto& [name, values] : both.tensors(region::gradients)) {
        std::vector<double>& sum = gradients[name];
        sum.resize(values.size());
        for (std::size_t i = 0; i < values.size(); ++i) sum[i] += values[i] / 2;
      }
    }
    CHECK(std::abs(loss - expected["eval"]["loss"].get<double>()) <= 1e-10);
    worst_loss = std::max(worst_loss, std::abs(loss - expected["eval"]["loss"].get<double>()));
    for (const auto& [name, values] : gradients)
      for (std::size_t i = 0; i < values.size(); ++i) {
        CAPTURE(name);
        const double wanted = i < whole.at(name).size() ? whole.at(name)[i] : 0;
        CHECK(std::abs(values[i] - wanted) <= 1e-12);
        worst_gradient = std::max(worst_gradient, std::abs(values[i] - wanted));
      }
  }
  CHECK(logits == 6);
  MESSAGE("largest difference of a loss " << worst_loss << ", of a logit " << worst_logit
                                          << ", of a gradient " << worst_gradient);
}

}  // namespace packed_test
