// SPDX-License-Identifier: Apache-2.0
// PyTorch's losses with the same recipe, to compare with the programs' losses.
#pragma once
#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>

#include "run.hpp"

/// The recipe "llama_rows" of the job "llama_rows_2", and its model "llama".
inline std::string recipe_of(const std::string& job) { return job.substr(0, job.rfind('_')); }
inline std::string model_of(const std::string& job) { return job.substr(0, job.find('_')); }

/// The batch options of a job in the file of losses.
inline std::string batch_options(const std::string& job) {
  if (job.ends_with("_1")) return " --batch 4 --loss";
  return job.ends_with("_2") ? " --batch 4 --accum 2 --loss" : " none";
}

/// PyTorch's losses for a job; empty if there are no recorded ones. PyTorch casts the operands of each layer
/// separately, as the host does.
inline std::vector<double> expected_losses(const std::string& job) {
  const bool in_rows = recipe_of(job) != model_of(job);
  const std::string wanted =
      (in_rows ? "--fp8 rowwise " : "") + ("--model tiny-" + model_of(job)) + batch_options(job);
  std::ifstream in(RANKC_TEST_ORACLES "/training/torch_losses_fp8.jsonl");
  for (std::string line; std::getline(in, line);)
    if (const auto j = nlohmann::json::parse(line); j.at("args").get<std::string>().starts_with(wanted))
      return j.at("losses");
  return {};
}

/// The largest difference from the expected losses, over as many steps as there are expected losses.
inline double difference_of_losses(const registered& program, std::span<const double> expected) {
  run r(program, "arith", 1e-3);
  double most = 0;
  for (const double loss : expected) most = std::max(most, std::abs(r.step().loss - loss));
  return most;
}

/// The norm of the difference of all gradients, relative to the norm of the expected ones.
inline double distance(const tensors& found, const tensors& expected) {
  double off = 0, all = 0;
  for (const auto& [name, values] : expected)
    for (std::size_t i = 0; i < values.size(); ++i) {
      off += std::pow(found.at(name)[i] - values[i], 2);
      all += std::pow(values[i], 2);
    }
  return std::sqrt(off / all);
}

inline tensors gradients_of(const registered& program) {
  run r(program, "arith", 1e-3);
  r.step();
  return r.tensors(rankc::runtime::region::gradients);
}

inline const registered& find_program(std::span<const registered> all, const std::string& job,
                                      const std::string& layout, const std::string& type) {
  const auto at = std::find_if(all.begin(), all.end(), [&](const registered& p) {
    return p.job == job && p.layout == layout && p.type == type;
  });
  REQUIRE(at != all.end());
  return *at;
}
