// SPDX-License-Identifier: Apache-2.0
// The console output of a run: lines, and on a terminal a last line that changes with every step.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace rankc::runtime {

/// "45 s", "12 min 05 s", "3 h 02 min"
std::string duration_text(double seconds);

/// "step 37/300  12 %  loss 5.123456  ETA 2 min 05 s"
std::string progress_text(std::int64_t step, std::int64_t last_step, double loss, double seconds_left);

class console {
 public:
  /// `speaks`: whether this process prints; `is_terminal`: whether standard output is one.
  console(bool speaks, bool is_terminal);
  ~console();
  console(const console&) = delete;

  /// Prints a line. If that fails, e.g. on a full disk, the run continues; the first failure is reported on
  /// stderr.
  void line(const std::string& text);
  /// Replaces the terminal's last line, at most ten times a second.
  void progress(const std::string& text);

 private:
  void clear();
  void print(const std::string& text);

  bool speaks_, is_terminal_, has_progress_ = false, failed_ = false;
  std::chrono::steady_clock::time_point shown_{};
};

/// Throws the failure of a write to standard output; errno has the reason.
/// Errors: failure (1).
[[noreturn]] void fail_to_print();

/// Prints a command's result and flushes it.
/// Errors: failure (1) if it cannot be written.
void print_result(std::string_view text);

}  // namespace rankc::runtime
