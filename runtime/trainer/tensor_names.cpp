// SPDX-License-Identifier: Apache-2.0
#include "tensor_names.hpp"

#include <rankc/trainer/safetensors.hpp>

#include <fmt/ranges.h>
#include <algorithm>

namespace rankc::runtime {
namespace {

constexpr std::size_t names_listed = 20;

void list(std::vector<std::string>& faults, const char* fault, const std::vector<std::string>& names) {
  if (names.empty()) return;
  const std::size_t shown = std::min(names.size(), names_listed);
  const auto rest = names.size() > shown ? fmt::format(" and {} more", names.size() - shown) : "";
  faults.push_back(
      fmt::format("{}: {}{}", fault, fmt::join(names.begin(), names.begin() + shown, ", "), rest));
}

}  // namespace

void check_shapes(const std::string& source, const shape_map& found, const shape_map& expected) {
  std::vector<std::string> missing, shapes, unexpected;
  for (const auto& [name, shape] : expected) {
    const auto at = found.find(name);
    if (at == found.end()) missing.push_back(name);
    else if (at->second != shape)
      shapes.push_back(fmt::format("{} {} instead of {}", name, shape_text(at->second), shape_text(shape)));
  }
  for (const auto& [name, shape] : found)
    if (!expected.contains(name)) unexpected.push_back(name);
  std::vector<std::string> faults;
  list(faults, "missing", missing);
  list(faults, "unexpected", unexpected);
  list(faults, "wrong shape", shapes);
  if (!faults.empty())
    throw failure(1, "RC6630: {} does not hold this model's tensors; {}", source,
                  fmt::format("{}", fmt::join(faults, "; ")));
}

void check_tensors(const tensor_source& in, const std::vector<global_parameter>& parameters,
                   const std::vector<saved_region>& regions) {
  shape_map expected;
  for (const saved_region& saved : regions)
    for (const global_parameter& p : parameters)
      if (has(p, saved.where)) expected[saved.prefix + p.name] = p.shape();
  check_shapes(in.name(), in.shapes(), expected);
}

}  // namespace rankc::runtime
