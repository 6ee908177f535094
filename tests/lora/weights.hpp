// SPDX-License-Identifier: Apache-2.0
// The initial weights of the tests of LoRA programs.
#pragma once
#include <rankc/trainer/hash.hpp>

#include "run.hpp"

inline const registered* find_program(const std::string& job, const std::string& layout) {
  for (const registered& p : host_registry)
    if (p.job == job && p.layout == layout) return &p;
  return nullptr;
}

inline void set(run& r, const rankc::runtime::global_parameter& p, const std::vector<double>& values) {
  rankc::runtime::write(
      *r.engine, p, rankc::runtime::region::weights, [&](std::size_t first, std::span<double> out) {
        std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(first), out.size(), out.begin());
      });
}

inline bool is_trained(const run& r, const std::string& name) {
  for (const auto& p : rankc::runtime::global_parameters(r.about))
    if (p.name == name) return p.trained;
  return false;
}

/// Draw the LoRA matrices that start with zeros; otherwise their partners have no gradient.
inline void draw_parts(run& r) {
  for (const auto& p : rankc::runtime::global_parameters(r.about)) {
    if (!p.name.ends_with(".lora_b")) continue;
    std::vector<double> values(p.count());
    rankc::runtime::hash_uniform(p.name, 0.1, 2, 0, values.size(), values.data());
    set(r, p, values);
  }
}
