// SPDX-License-Identifier: Apache-2.0
// The data of a resumed run: each known source continues at its next token, new data at its beginning.
#pragma once
#include <rankc/trainer/command_line.hpp>
#include <rankc/trainer/run_state.hpp>
#include <rankc/trainer/sample_source.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace rankc::runtime {

/// The sources of a run, each with its order and its held-out share.
struct planned_data {
  data_record record;
  std::vector<sample_order> orders;
  bool may_hold_out = true;          // no held-out part has been trained on
  std::vector<std::string> notes{};  // one for each change since the checkpoint
};

/// The data of a new run.
planned_data begin_data(const description&, const run_state&, const std::vector<opened_source>&);

/// The checkpoint that a run continues.
struct resumed_from {
  const run_state& state;
  const std::filesystem::path& folder;
};

/// The data of a resumed run. `now` is the state after the options and the checkpoint.
/// Errors: failure (1) for files that have changed, if --data is not given; failure (2) if the options hold
/// out data that has been trained on.
planned_data resume_data(const description&, const resumed_from&, const run_state& now, const options&,
                         const std::vector<opened_source>&);

}  // namespace rankc::runtime
