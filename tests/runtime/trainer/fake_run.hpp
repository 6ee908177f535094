// SPDX-License-Identifier: Apache-2.0
// Runs a command line of the fake program and records the outcome.
#pragma once
#include <rankc/trainer/main.hpp>

#include "../../capture.hpp"
#include "fake_engine.hpp"
#include "scratch.hpp"

#include <nlohmann/json.hpp>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

namespace rankc::runtime {

struct outcome {
  int code;
  std::string out, err;
  int installs;
};

using prepare_engine = std::function<void(fake_engine&)>;

inline outcome run(const fake_program& program, std::vector<std::string> words,
                   const prepare_engine& prepare = {}) {
  words.insert(words.begin(), "fake");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  outcome result{};
  const auto install = [&]() -> std::unique_ptr<engine> {
    ++result.installs;
    auto e = std::make_unique<fake_engine>(program);
    if (prepare) prepare(*e);
    return e;
  };
  testing::capture out(stdout), err(stderr);
  result.code = program_main(program.about, install, static_cast<int>(argv.size()), argv.data());
  result.err = err.end();
  result.out = out.end();
  return result;
}

inline std::vector<nlohmann::json> lines_of(const std::string& file) {
  std::istringstream in(contents(file));
  std::vector<nlohmann::json> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

/// The exact losses of the steps in a metrics file.
inline std::vector<double> losses_of(const std::string& file) {
  std::vector<double> losses;
  for (const auto& line : lines_of(file)) losses.push_back(line["loss"]);
  return losses;
}

}  // namespace rankc::runtime
