// SPDX-License-Identifier: Apache-2.0
// What the generators of test plans have in common: each plan's program for a target, sources of several
// programs each, and a registry of all.
#pragma once
#include "split_plan.hpp"

#include <string>
#include <vector>

struct family_program {
  std::string job, layout, type;  // type: "f64", "f32", "bf16"
  rankc::plan_data plan;
};

/// What a generator is called with: generate TARGET OUT PARTS.
struct generate_request {
  /// Ends the process with 2 where it is called otherwise.
  generate_request(int argc, char** argv);
  std::string target, out;
  int parts;
  bool is_host() const { return target == "host"; }
};

/// Write the programs for the target into folders of `out`; `part_0.cpp` to `part_<parts - 1>.cpp`, which
/// include their sources, and `registry.cpp`, which lists them all. Names have the target's behind them,
/// since programs of both are linked together.
/// Errors: 1 where a plan is refused, with what its generator says.
int write_programs(const generate_request&, std::vector<family_program> programs);
/// For the host all, in f64; for GPUs those on up to four ranks, in f32.
int write_programs(const generate_request&, std::vector<split_plan> plans);
/// For the host all, in f64; for GPUs those on up to two ranks, in f32 and in bf16. Names end with the type.
int write_programs_of_types(const generate_request&, const std::vector<split_plan>& plans);
