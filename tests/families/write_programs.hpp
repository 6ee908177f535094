// SPDX-License-Identifier: Apache-2.0
// The generators of test plans: each writes its plans' programs for a target, sources that include several
// programs each, and a registry of the programs.
#pragma once
#include "family_program.hpp"
#include "split_plan.hpp"

#include <string>
#include <vector>

/// The arguments of a generator: generate TARGET OUT PARTS [sample].
struct generate_request {
  /// Exits with 2 if the arguments are not of that form.
  generate_request(int argc, char** argv);
  std::string target, out;
  int parts;
  bool takes_sample;
  bool is_host() const { return target == "host"; }
};

/// Writes the programs, or their sample, for the target into folders of `out`. `part_0.cpp` to
/// `part_<parts - 1>.cpp` include their sources, and `registry.cpp` lists them. Names end with the target,
/// because programs of both targets are linked together.
/// Errors: 1 if a plan is refused; its generator prints the reason.
int write_programs(const generate_request&, std::vector<family_program> programs);
/// For the host, every plan in f64; for GPUs, the plans on up to four ranks in f32.
int write_programs(const generate_request&, std::vector<split_plan> plans);
/// For the host, every plan in f64; for GPUs, the plans on up to two ranks in f32 and in bf16. Names end with
/// the type.
int write_programs_of_types(const generate_request&, const std::vector<split_plan>& plans);
