// SPDX-License-Identifier: Apache-2.0
// Encoders compute what PyTorch computes in float64, on every layout: the losses of five steps, and every
// element of the gradients of the first.
#include <rankc/trainer/hash.hpp>
#include <rankc/trainer/npy_file.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "run.hpp"

namespace encoders_oracle_test {

namespace {

using nlohmann::ordered_json;
using rankc::runtime::region;

const std::string folder = RANKC_TEST_ORACLES "/encoders/";

bool is_gain(const std::string& name) {
  const std::string last = name.substr(name.rfind('.') + 1);
  return last == "norm" || last == "norm1" || last == "norm2";
}

/// The weights of torch_encoders.py.
void load_weights(run& r) {
  for (const auto& p : rankc::runtime::global_parameters(r.about)) {
    const std::uint64_t key = rankc::runtime::fnv1a64(p.name);
    rankc::runtime::write(*r.engine, p, region::weights, [&](std::size_t first, std::span<double> out) {
      for (std::size_t i = 0; i < out.size(); ++i) {
        const auto bits = static_cast<double>(rankc::runtime::splitmix64(key + first + i) >> 11);
        out[i] = (is_gain(p.name) ? 1.0 : 0.0) + 0.5 * (bits * 0x1p-53 - 0.5);
      }
    });
  }
}

}  // namespace

TEST_CASE("losses and gradients of every layout are PyTorch's") {
  std::map<std::string, int> layouts;
  double worst = 0, worst_loss = 0;
  for (const registered& program : host_registry) {
    CAPTURE(program.job);
    CAPTURE(program.layout);
    std::ifstream in(folder + program.job + ".json");
    const ordered_json expected = ordered_json::parse(in);
    const rankc::runtime::npy_file file(folder + program.job + ".npy");
    std::vector<double> gradients(file.shape().at(0));
    file.copy(0, gradients.size(), gradients.data());

    run r(program, "arith", 1e-3);
    load_weights(r);
    for (std::size_t step = 0; step < expected["losses"].size(); ++step) {
      const auto output = r.step();
      const double loss = expected["losses"][step];
      CHECK(std::abs(output.loss - loss) <= 1e-10 * loss);
      worst_loss = std::max(worst_loss, std::abs(output.loss - loss) / loss);
      if (step > 0) continue;
      const double norm = expected["grad_norm"];
      CHECK(std::abs(output.grad_norm - norm) <= 1e-10 * norm);
      const tensors made = r.tensors(region::gradients);
      CHECK(made.size() == expected["parameters"].size());
      std::size_t next = 0;
      for (const auto& [name, count] : expected["parameters"].items()) {
        CAPTURE(name);
        REQUIRE(made.count(name) == 1);
        REQUIRE(made.at(name).size() == count);
        for (const double found : made.at(name)) {
          const double apart = std::abs(found - gradients.at(next++));
          CHECK(apart <= 1e-9 * norm);
          worst = std::max(worst, apart / norm);
        }
      }
      CHECK(next == gradients.size());
    }
    ++layouts[program.job];
  }
  CHECK(layouts == std::map<std::string, int>{{"regression", 15}, {"vit", 15}});
  MESSAGE("largest difference of a loss " << worst_loss << ", of an element " << worst
                                          << " of the gradient norm");
}

}  // namespace encoders_oracle_test
