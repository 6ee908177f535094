// SPDX-License-Identifier: Apache-2.0
// Where a run stands and what it runs with: the part of a checkpoint that is not tensors (run.json).
#pragma once
#include <rankc/runtime/program.hpp>

#include <cstdint>
#include <filesystem>
#include <string>

namespace rankc::runtime {

/// `train` holds the recipe with what the command line replaced; `data` and `init` are spelled as there.
struct run_state {
  std::int64_t step = 0;       // steps done
  std::uint64_t samples = 0;   // samples seen: the next step begins with this one
  std::int64_t last_step = 0;  // that the run was to take
  std::string init, data;
  std::string shuffle{}, eval_data{};  // empty: none
  double eval_fraction = 0;
  recipe train{};
  std::uint64_t plan_hash = 0;
};

/// run.json, with the parallel layout for the reader and a checksum for the loader.
/// Errors: failure (65) when it cannot be written.
std::string run_state_text(const run_state&, const description&);
void write_run_state(const run_state&, const description&, const std::filesystem::path& file);

/// Read run.json. What the command line cannot replace (betas, eps) stays as the plan has it.
/// Errors: failure (65) when it cannot be read or is damaged.
run_state read_run_state(const description&, const std::filesystem::path& file);

}  // namespace rankc::runtime
