// SPDX-License-Identifier: Apache-2.0
// The progress and settings of a run: the part of a checkpoint that is not tensors (run.json).
#pragma once
#include <rankc/runtime/program.hpp>
#include <rankc/trainer/data_record.hpp>
#include <rankc/trainer/plan_optimizer.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace rankc::runtime {

/// `train` holds the recipe with the values that the command line replaced; `data` and `init` are spelled as
/// on the command line.
struct run_state {
  std::int64_t step = 0;       // steps done
  std::uint64_t samples = 0;   // samples trained on: the next step begins with this one
  std::int64_t last_step = 0;  // the run's last step
  std::string init, data;
  std::string labels{}, shuffle{}, eval_data{};  // empty: not given
  double eval_fraction = 0;
  recipe train{};
  std::uint64_t plan_hash = 0;
  std::uint64_t tokens = 0;                        // tokens trained on
  int seq = 0;                                     // the seq of the plan that saved
  std::int64_t eval_every = 0, eval_batches = 10;  // eval_every 0: only at the end
  std::optional<data_record> read{};               // empty: run.json of an older version
  std::optional<recipe>
      plan_train{};  // the recipe of the plan that saved; empty: run.json of an older version
  std::optional<plan_optimizer>
      optimizer{};           // the optimizer of the plan that saved; empty: run.json of an older version
  std::string plan{};        // the name of the plan that saved
  std::int64_t skipped = 0;  // steps that changed nothing, because no label counted
};

/// The text of run.json. It has the parallel layout for readers and a checksum for the loader.
/// Errors: failure (65) if it cannot be written.
std::string run_state_text(const run_state&, const description&);
void write_run_state(const run_state&, const description&, const std::filesystem::path& file);

/// Reads run.json, including older versions. The values that the command line cannot replace (betas, eps) are
/// taken from the plan.
/// Errors: failure (65) if it cannot be read or is damaged.
run_state read_run_state(const description&, const std::filesystem::path& file);

}  // namespace rankc::runtime
