// SPDX-License-Identifier: Apache-2.0
// Every layout reproduces PyTorch's float64 losses, from the same weights and samples.
#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "run.hpp"

namespace {

struct oracle_line {
  std::string args;
  std::vector<double> losses;
  bool has(const std::string& flag) const { return args.find(flag) != args.npos; }
  double lr() const {
    const auto at = args.find("--lr ");
    return at == args.npos ? 3e-4 : std::stod(args.substr(at + 5));
  }
};

/// The lines, in the order of programs::jobs.
std::vector<oracle_line> oracle() {
  std::ifstream in(RANKC_TEST_ORACLES "/training/torch_losses.jsonl");
  std::vector<oracle_line> lines;
  for (std::string text; std::getline(in, text);) {
    const auto j = nlohmann::json::parse(text);
    lines.push_back({j.at("args"), j.at("losses")});
  }
  return lines;
}

void reproduce(const std::string& type) {
  const auto lines = oracle();
  std::vector<std::string> jobs;
  double worst_early = 0, worst = 0;
  for (const registered& program : registry) {
    if (jobs.empty() || jobs.back() != program.job) {
      if (std::find(jobs.begin(), jobs.end(), program.job) == jobs.end()) jobs.push_back(program.job);
    }
    if (program.type != type) continue;
    const auto line = static_cast<std::size_t>(std::find(jobs.begin(), jobs.end(), program.job) - jobs.begin());
    REQUIRE(line < lines.size());
    const oracle_line& expected = lines[line];
    CAPTURE(expected.args);
    CAPTURE(program.layout);
    run r(program, expected.has("--data rand") ? "rand" : "arith", expected.lr());
    for (std::size_t n = 0; n < expected.losses.size(); ++n) {
      CAPTURE(n);
      const double error = std::abs(r.step().loss - expected.losses[n]);
      const double allowed = type == "f64" ? 1e-9 : n < 5 ? 2e-5 : 5e-4;
      CHECK(error <= allowed);
      (n < 5 ? worst_early : worst) = std::max(n < 5 ? worst_early : worst, error);
    }
  }
  MESSAGE(type << ": largest difference " << worst_early << " in the first 5 steps, " << worst << " after");
}

}  // namespace

TEST_CASE("f64 losses are PyTorch's to 1e-9 at every step") { reproduce("f64"); }
TEST_CASE("f32 losses are PyTorch's to 2e-5 in the first five steps and 5e-4 after") { reproduce("f32"); }
