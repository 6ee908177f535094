// SPDX-License-Identifier: Apache-2.0
// The file of --metrics: one JSON object per step, each step once, from one run at a time.
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
  /// Begins a file, or continues one after step `after`. A new file first renames an existing one to FILE.1,
  /// FILE.2, ...; a continued file loses its lines of later steps.
  /// Errors: failure (2) if another run writes the file; failure (1) if it cannot be written.
  metrics_file(const std::filesystem::path&, std::optional<std::int64_t> after);

  /// Sentences for the user about the file.
  const std::vector<std::string>& notes() const { return notes_; }

  /// Writes one line. If that fails, e.g. on a full disk, training continues; the first failure is reported
  /// on stderr.
  void write(const step_metrics&);

  /// True if a file that begins with this text is a metrics file.
  static bool is_one(std::string_view beginning);

 private:
  output_file out_;
  std::vector<std::string> notes_;
  bool failed_ = false;
};

}  // namespace rankc::runtime
