// SPDX-License-Identifier: Apache-2.0
// The call times of one step in a file (trace_events.hpp).
#pragma once
#include <rankc/runtime/engine.hpp>

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace rankc::runtime {

class trace_file {
 public:
  /// Errors: failure (1) if no file can be created there.
  explicit trace_file(const std::filesystem::path&);

  /// Writes the step and returns a sentence with the file's place.
  /// Errors: failure (1) if it cannot be written; an existing file stays unchanged.
  std::string write(const description&, std::int64_t step, std::span<const traced>);

 private:
  std::filesystem::path file_;
};

}  // namespace rankc::runtime
