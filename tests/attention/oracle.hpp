// SPDX-License-Identifier: Apache-2.0
// A program that runs with the weights and the rows of tokens of an oracle.
#pragma once
#include <doctest/doctest.h>

#include <rankc/trainer/safetensors.hpp>

#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "run.hpp"

namespace oracle {

inline nlohmann::json read_json(const std::string& file) {
  std::ifstream in(file);
  REQUIRE(in);
  return nlohmann::json::parse(in);
}

/// Loads the weights of a folder. `name_in_file` gives the file's name of one of our parameters.
inline void load_weights(run& r, const std::string& folder, auto name_in_file) {
  const rankc::runtime::safetensors_reader file(folder + "model.safetensors");
  for (const auto& p : rankc::runtime::global_parameters(r.about))
    rankc::runtime::write(*r.engine, p, rankc::runtime::region::weights,
                          [&](std::size_t first, std::span<double> out) {
                            file.read(name_in_file(p.name), first, out.size(), out.data());
                          });
}

/// Sets the rows of a step. All tokens of a row but the last are the input, and all but the first are the
/// targets.
inline void set_batch(run& r, const nlohmann::json& rows) {
  const auto count = static_cast<std::size_t>(r.about.rows);
  std::size_t next = 0;
  for (int microbatch = 0; microbatch < r.about.microbatches; ++microbatch)
    for (int dp = 0; dp < r.about.dp; ++dp) {
      std::vector<std::int32_t> tokens, targets;
      for (std::size_t row = 0; row < count; ++row, ++next) {
        const std::vector<std::int32_t> all = rows.at(next);
        tokens.insert(tokens.end(), all.begin(), all.end() - 1);
        targets.insert(targets.end(), all.begin() + 1, all.end());
      }
      r.engine->set_batch(dp, microbatch, tokens.data(), targets.data());
    }
}

inline rankc::runtime::step_output step(run& r) {
  const auto& t = r.about.train;
  return r.engine->step({r.lr, t.weight_decay, t.clip, t.beta1, t.beta2, t.eps, ++r.steps, t.momentum,
                         t.nesterov, t.rounding_seed});
}

}  // namespace oracle
