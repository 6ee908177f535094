// SPDX-License-Identifier: Apache-2.0
// PyTorch's float64 losses, and a program's run to compare with them.
#pragma once
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "plans.hpp"
#include "run.hpp"

struct oracle_line {
  std::string args;
  std::vector<double> losses;
  bool has(const std::string& flag) const { return args.find(flag) != args.npos; }
  double lr() const {
    const auto at = args.find("--lr ");
    return at == args.npos ? 3e-4 : std::stod(args.substr(at + 5));
  }
};

/// The oracle's lines, in the order of programs::jobs.
inline std::vector<oracle_line> oracle() {
  std::ifstream in(RANKC_TEST_ORACLES "/training/torch_losses.jsonl");
  std::vector<oracle_line> lines;
  for (std::string text; std::getline(in, text);) {
    const auto j = nlohmann::json::parse(text);
    lines.push_back({j.at("args"), j.at("losses")});
  }
  return lines;
}

/// Whether PyTorch ran the job of a program.
inline bool has_oracle(const registered& program) {
  return std::any_of(std::begin(programs::jobs), std::end(programs::jobs),
                     [&](const programs::job& j) { return program.job == j.name; });
}

/// The oracle's line for a program's job.
inline const oracle_line& expected_of(const registered& program) {
  static const std::vector<oracle_line> lines = oracle();
  const auto same = [&](const programs::job& j) { return program.job == j.name; };
  const auto line = static_cast<std::size_t>(
      std::find_if(std::begin(programs::jobs), std::end(programs::jobs), same) - programs::jobs);
  REQUIRE(lines.size() == std::size(programs::jobs));
  REQUIRE(line < lines.size());
  REQUIRE(lines[line].losses.size() >= 20);
  return lines[line];
}

inline run start(const registered& program) {
  const oracle_line& expected = expected_of(program);
  return run(program, expected.has("--data rand") ? "rand" : "arith", expected.lr());
}

/// The largest differences from PyTorch's losses over the first `steps` steps: in the first five, and after.
struct loss_difference {
  double early = 0, late = 0;
};
inline loss_difference difference_of_losses(const registered& program,
                                            std::size_t steps = std::numeric_limits<std::size_t>::max()) {
  const oracle_line& expected = expected_of(program);
  run r = start(program);
  loss_difference worst;
  for (std::size_t n = 0; n < std::min(steps, expected.losses.size()); ++n) {
    const double off = std::abs(r.step().loss - expected.losses[n]);
    double& of = n < 5 ? worst.early : worst.late;
    of = off <= of ? of : off;  // NaN stays NaN
  }
  return worst;
}
