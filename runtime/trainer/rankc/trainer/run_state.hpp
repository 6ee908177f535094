// SPDX-License-Identifier: Apache-2.0
// Where a run stands and what it runs with: the part of a checkpoint that is not tensors (run.json).
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
/// there.
struct run_state {
  std::int64_t step = 0;       // steps done
  std::uint64_t samples = 0;   // samples trained on: the next step begins with this one
  std::int64_t last_step = 0;  // of the run
  std::string init, data;
  std::string labels{}, shuffle{}, eval_data{};  // empty: none
  double eval_fraction = 0;
  recipe train{};
  std::uint64_t plan_hash = 0;
  std::uint64_t tokens = 0;                        // tokens trained on
  int seq = 0;                                     // of the plan that saved
  std::int64_t eval_every = 0, eval_batches = 10;  // eval_every 0: at the end alone
  std::optional<data_record> read{};               // none: run.json of an older version
  std::optional<recipe> plan_train{};              // the recipe of the plan that saved; none: likewise
  std::optional<plan_optimizer> optimizer{};       // of the plan that saved; none: likewise
  std::string plan{};                              // the name of the plan that saved
  std::int64_t skipped = 0;                        // steps that changed nothing, because no label counted
};

/// run.json, with the parallel layout for the reader and a checksum for the loader.
/// Errors: failure (65) when it cannot be written.
std::string run_state_text(const run_state&, const description&);
void write_run_state(const run_state&, const description&, const std::filesystem::path& file);

/// Read run.json, also of older versions. The values that the command line cannot replace (betas, eps) are
/// the plan's.
/// Errors: failure (65) when it cannot be read or is damaged.
run_state read_run_state(const description&, const std::filesystem::path& file);

}  // namespace rankc::runtime
