// SPDX-License-Identifier: Apache-2.0
// --skip-batches: a run skips batches that lead to a spike of the loss, or to NaN.
#pragma once
#include <rankc/trainer/data_record.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace rankc::runtime {

struct step_range {
  std::int64_t first, last;
};

/// Reads `A:B`. Errors: failure (2) for anything but 1 <= A <= B.
step_range parse_step_range(std::string_view text);

/// The position of a run: steps taken, samples trained on, and the samples of a batch.
struct run_place {
  std::int64_t step;
  std::uint64_t samples, batch;
};

/// Skips the batches that these steps would train on: step `first` trains on the batch after them.
/// Returns: a note.
/// Errors: failure (2) for a step that has been taken.
std::string skip_batches(const step_range&, const run_place&, data_record&);

}  // namespace rankc::runtime
