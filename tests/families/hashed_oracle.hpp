// SPDX-License-Identifier: Apache-2.0
// A run of PyTorch in float64 (tests/oracles/hashed.py): weights by hash, the losses of some steps, and every
// element of the first step's gradients.
#pragma once
#include <rankc/trainer/hash.hpp>
#include <rankc/trainer/npy_file.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "run.hpp"

class hashed_oracle {
 public:
  /// Reads PATH.json and PATH.npy.
  explicit hashed_oracle(const std::string& path) {
    std::ifstream in(path + ".json");
    REQUIRE(in);
    expected_ = nlohmann::ordered_json::parse(in);
    const rankc::runtime::npy_file file(path + ".npy");
    gradients_.resize(file.shape().at(0));
    file.copy(0, gradients_.size(), gradients_.data());
  }

  const nlohmann::ordered_json& expected() const { return expected_; }
  std::size_t steps() const { return expected_["losses"].size(); }

  static void load_weights(run& r) {
    for (const auto& p : rankc::runtime::global_parameters(r.about)) {
      const std::uint64_t key = rankc::runtime::fnv1a64(p.name);
      rankc::runtime::write(*r.engine, p, rankc::runtime::region::weights,
                            [&](std::size_t first, std::span<double> out) {
                              for (std::size_t i = 0; i < out.size(); ++i)
                                out[i] = weight(key + first + i, is_gain(p.name));
                            });
    }
  }

  /// Compares the loss of a step, and the gradients of step 0.
  void check_step(run& r, std::size_t step, const rankc::runtime::step_output& output) {
    const double loss = expected_["losses"][step], apart = std::abs(output.loss - loss);
    CHECK(apart <= 1e-10 * std::min(1.0, loss));
    worst_loss_ = std::max(worst_loss_, apart / loss);
    if (step == 0) check_gradients(r, output.grad_norm);
  }

  std::string worst_differences() const {
    return "largest difference of a loss " + std::to_string(worst_loss_ * 1e15) + "e-15, of an element " +
           std::to_string(worst_ * 1e15) + "e-15 of the gradient norm";
  }

 private:
  static bool is_gain(const std::string& name) {
    const std::string last = name.substr(name.rfind('.') + 1);
    return last == "norm" || last == "norm1" || last == "norm2";
  }
  static double weight(std::uint64_t key, bool is_gain) {
    const auto bits = static_cast<double>(rankc::runtime::splitmix64(key) >> 11);
    return (is_gain ? 1.0 : 0.0) + 0.5 * (bits * 0x1p-53 - 0.5);
  }

  void check_gradients(run& r, double found_norm) {
    const double norm = expected_["grad_norm"], limit = std::min(1.0, norm);
    CHECK(std::abs(found_norm - norm) <= 1e-10 * limit);
    const tensors made = r.tensors(rankc::runtime::region::gradients);
    CHECK(made.size() == expected_["parameters"].size());
    std::size_t next = 0;
    for (const auto& [name, count] : expected_["parameters"].items()) {
      CAPTURE(name);
      REQUIRE(made.count(name) == 1);
      REQUIRE(made.at(name).size() == count);
      for (const double found : made.at(name)) {
        const double apart = std::abs(found - gradients_.at(next++));
        CHECK(apart <= 1e-9 * limit);
        worst_ = std::max(worst_, apart / norm);
      }
    }
    CHECK(next == gradients_.size());
  }

  nlohmann::ordered_json expected_;
  std::vector<double> gradients_;
  double worst_ = 0, worst_loss_ = 0;
};
