// SPDX-License-Identifier: Apache-2.0
// Reads and compares the results of transformer-perf-estimates in tests/oracles/planner.
#pragma once
#include <published_model/search.hpp>

#include <charconv>
#include <cmath>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace oracle {

using namespace rankc::published_model;

/// The fields of a line, read one after the other.
class fields {
 public:
  explicit fields(std::string_view line) : left_(line) {}

  std::string_view word() {
    const std::size_t end = left_.find(',');
    const std::string_view field = left_.substr(0, end);
    left_ = end == std::string_view::npos ? std::string_view() : left_.substr(end + 1);
    return field;
  }
  double number() { return parsed<double>(word()); }
  int integer() { return parsed<int>(word()); }

  template <typename T>
  static T parsed(std::string_view text) {
    T value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size())
      throw std::runtime_error("not a number: " + std::string(text));
    return value;
  }

 private:
  std::string_view left_;
};

/// The lines of a file after its headings.
inline std::vector<std::string> lines_of(const std::string& name, int headings) {
  std::ifstream file(RANKC_PLANNER_ORACLES "/" + name);
  if (!file) throw std::runtime_error("no oracle " + name);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return {lines.begin() + headings, lines.end()};
}

inline transformer model_of(std::string_view name) {
  if (name == "gpt3") return gpt3;
  if (name == "gpt3_1T") return gpt3_1T;
  if (name == "vit_era5") return vit_era5;
  if (name == "x_gpt1p3b") return {2048, 2048, 16, 24};
  if (name == "x_dense70b_8k") return {8192, 8192, 64, 80};
  throw std::runtime_error("no model " + std::string(name));
}

inline strategy strategy_of(std::string_view name) {
  if (name == "1d") return strategy::tp1d;
  if (name == "2d" || name == "sa_2d_only") return strategy::tp2d;
  if (name == "seqp") return strategy::seqp;
  throw std::runtime_error("no strategy " + std::string(name));
}

inline gpu_system system_of(std::string_view name, int nvs) {
  for (const gpu_system& s : gpu_systems) {
    if (s.name == name) return s.with_domain(nvs);
  }
  throw std::runtime_error("no system " + std::string(name));
}

/// Equal to 1e-9 of the larger number.
inline bool same(double ours, double theirs) {
  return std::abs(ours - theirs) <= 1e-9 * std::max(std::abs(ours), std::abs(theirs));
}

}  // namespace oracle
