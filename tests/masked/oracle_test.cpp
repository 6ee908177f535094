// SPDX-License-Identifier: Apache-2.0
// Losses and gradients with ignored labels match PyTorch in float64, on every layout. The wrong mean, a mean
// of the rows' means, differs.
#include <cmath>
#include <utility>

#include "transformers_oracle.hpp"

namespace masked_oracle_test {

namespace {

using nlohmann::json;
using rankc::runtime::region;

/// Calls `check` for each program of the two oracles.
void each_program(auto check) {
  int programs = 0;
  for (const auto& [job, folder] : {std::pair("llama", "masked"), std::pair("tied", "masked_sparse")}) {
    const transformers_oracle oracle(folder);
    const json expected = oracle.expected(), batches = oracle.batches();
    for (const registered& program : host_registry) {
      if (program.job != job) continue;
      CAPTURE(program.job);
      CAPTURE(program.layout);
      run r(program, "arith", 1e-2);
      oracle.load_weights(r);
      check(oracle, r, expected, batches);
      ++programs;
    }
  }
  CHECK(programs == expected_of(programs, 25));
}

std::vector<double> flattened(const json& tensor) {
  if (!tensor.is_array()) return {tensor.get<double>()};
  std::vector<double> all;
  for (const json& part : tensor)
    for (const double x : flattened(part)) all.push_back(x);
  return all;
}

}  // namespace

TEST_CASE("a masked loss and its gradients are PyTorch's") {
  each_program([](const transformers_oracle& oracle, run& r, const json& expected, const json& batches) {
    const json& eval = expected["eval"];
    oracle.set_batch(r, batches["eval"], batches["eval_labels"]);
    const double loss = r.engine->evaluate();
    CHECK(std::abs(loss - eval["loss"].get<double>()) <= 1e-10);
    CHECK(std::abs(loss - eval["mean_of_means"].get<double>()) > 1e-2);
    const auto out = r.update();
    CHECK(std::abs(out.loss - eval["loss"].get<double>()) <= 1e-10);
    CHECK(std::abs(out.grad_norm - eval["grad_norm"].get<double>()) <= 1e-9);
    int whole = 0;
    for (const auto& [name, gradient] : r.tensors(region::gradients)) {
      CAPTURE(name);
      const std::string theirs = oracle.name_in_file(name);
      CHECK(std::abs(oracle.norm_of(gradient) - eval["grad_norms"][theirs].get<double>()) <= 1e-9);
      if (!eval["grads"].contains(theirs)) continue;
      const std::vector<double> values = flattened(eval["grads"][theirs]);
      REQUIRE(values.size() == gradient.size());
      for (std::size_t i = 0; i < values.size(); ++i) CHECK(std::abs(values[i] - gradient[i]) <= 1e-9);
      ++whole;
    }
    CHECK(whole >= 5);
  });
}

TEST_CASE("ten steps with ignored labels are PyTorch's, and a step without labels is skipped") {
  each_program([](const transformers_oracle& oracle, run& r, const json& expected, const json& batches) {
    for (std::size_t n = 0; n < 10; ++n) {
      CAPTURE(n);
      oracle.set_batch(r, batches["train"][n], batches["train_labels"][n]);
      const auto out = r.update();
      const json& step = expected["train"][n];
      CHECK(out.is_skipped == (step["count"] == 0));
      const double loss = out.is_skipped ? 0 : step["loss"].get<double>(),
                   norm = out.is_skipped ? 0 : step["grad_norm"].get<double>();
      CHECK(std::abs(out.loss - loss) <= 1e-9);
      CHECK(std::abs(out.grad_norm - norm) <= 1e-9);
    }
    CHECK(r.skipped == 1);
    oracle.set_batch(r, batches["eval"], batches["eval_labels"]);
    CHECK(std::abs(r.engine->evaluate() - expected["after"]["loss"].get<double>()) <= 1e-9);
  });
}

}  // namespace masked_oracle_test
