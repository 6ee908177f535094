// SPDX-License-Identifier: Apache-2.0
// The file of --metrics: one JSON object a step, each step once, of one run at a time.
#pragma once
#include <rankc/runtime/output_file.hpp>
#include <rankc/trainer/metrics.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rankc::runtime {

class metrics_file {
 public:
  /// Begin a file, or go on with one after a step. A file of an earlier run is kept as FILE.1, .2, ... where
  /// one is begun; where it goes on, its lines of later steps are removed.
  /// Errors: failure (2) where another run writes it; failure (1) where it cannot be written.
  metrics_file(const std::filesystem::path&, std::optional<std::int64_t> after);

  /// What the user should know of it, in sentences.
  const std::vector<std::string>& notes() const { return notes_; }

  /// Write one line. When that fails, as on a full disk, training goes on: the first time says so on stderr.
  void write(const step_metrics&);

  /// Whether a file that begins so is one of metrics.
  static bool is_one(std::string_view beginning);

 private:
  output_file out_;
  std::vector<std::string> notes_;
  bool failed_ = false;
};

}  // namespace rankc::runtime
