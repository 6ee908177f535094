// SPDX-License-Identifier: Apache-2.0
#include "results.hpp"

#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace bench {

namespace {

std::vector<result> read_all() {
  std::vector<result> all;
  for (const auto& entry : std::filesystem::directory_iterator(RANKC_RESULTS)) {
    if (entry.path().extension() != ".jsonl") continue;
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);)
      all.push_back({entry.path().stem().string(), nlohmann::json::parse(line)});
  }
  return all;
}

}  // namespace

const std::vector<result>& results() {
  static const std::vector<result> all = read_all();
  return all;
}

const result& result_of(std::string_view file, std::string_view program) {
  for (const result& r : results())
    if (r.file == file && r.line.at("program") == program && r.line.contains("rankc_ms")) return r;
  throw std::runtime_error("no file of tests/bench/results has the step of " + std::string(program) + ": " +
                           std::string(file));
}

}  // namespace bench
