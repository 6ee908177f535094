// SPDX-License-Identifier: Apache-2.0
// What the generators of families of plans have in common: each plan's program for a target, and a registry of them.
#pragma once
#include <rankc/plan/plan_data.hpp>

#include <string>
#include <vector>

struct family_program {
  std::string job, layout, type;  // type: "f64", "f32", "bf16"
  rankc::plan_data plan;
};

/// Whether the registry includes the programs' sources, or their headers alone where they are compiled apart.
enum class registry_of { sources, headers };

/// Write the programs for a target into folders of `out`, and `registry.cpp` that lists them all. Names have the
/// target's behind them, since programs of both targets are linked together.
/// Errors: 1 where a plan is refused, with what its generator says.
int write_programs(const std::string& target, const std::string& out, std::vector<family_program> programs,
                   registry_of = registry_of::sources);
