// SPDX-License-Identifier: Apache-2.0
// Mistral, which has window attention, computes the same as transformers in float64, alone and split.
#include <cmath>

#include "transformers_oracle.hpp"

namespace attention_oracle_test {

using nlohmann::json;
using rankc::runtime::region;

TEST_CASE("Mistral's logits, losses and gradients are those of transformers, alone and split") {
  const transformers_oracle oracle("mistral");
  const json expected = oracle.expected(), batches = oracle.batches();
  int programs = 0;
  for (const registered& program : host_registry) {
    if (program.job != "mistral") continue;
    CAPTURE(program.layout);
    run r(program, "arith", 1e-2);
    oracle.load_weights(r);
    oracle.set_batch(r, batches["eval"]);
    CHECK(std::abs(r.engine->evaluate() - expected["eval"]["loss"].get<double>()) <= 1e-10);
    if (r.about.world() == 1)
      for (std::size_t token = 0; token < 32; ++token) {
        std::vector<double> logits(96);
        r.engine->logits(0, token, logits.data());
        for (std::size_t i = 0; i < logits.size(); ++i)
          CHECK(std::abs(logits[i] - expected["eval"]["logits_seq0"][token][i].get<double>()) <= 1e-10);
      }
    CHECK(std::abs(r.update().grad_norm - expected["eval"]["grad_norm"].get<double>()) <= 1e-9);
    for (const auto& [name, gradient] : r.tensors(region::gradients)) {
      CAPTURE(name);
      CHECK(std::abs(oracle.norm_of(gradient) -
                     expected["eval"]["grad_norms"][oracle.name_in_file(name)].get<double>()) <= 1e-10);
    }
    ++programs;
  }
  CHECK(programs >= 1);
}

TEST_CASE("ten steps of Mistral are those of transformers, alone and split") {
  const transformers_oracle oracle("mistral");
  const json expected = oracle.expected(), batches = oracle.batches();
  for (const registered& program : host_registry) {
    if (program.job != "mistral") continue;
    CAPTURE(program.layout);
    run r(program, "arith", 1e-2);
    oracle.load_weights(r);
    for (std::size_t n = 0; n < 10; ++n) {
      oracle.set_batch(r, batches["train"][n]);
      const auto out = r.update();
      CHECK(std::abs(out.loss - expected["train"][n]["loss"].get<double>()) <= 1e-9);
      CHECK(std::abs(out.grad_norm - expected["train"][n]["grad_norm"].get<double>()) <= 1e-9);
    }
    oracle.set_batch(r, batches["eval"]);
    CHECK(std::abs(r.engine->evaluate() - expected["after"]["loss"].get<double>()) <= 1e-9);
  }
}

}  // namespace attention_oracle_test
