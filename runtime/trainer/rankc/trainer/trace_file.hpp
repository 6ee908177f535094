// SPDX-License-Identifier: Apache-2.0
// The times of one step in a file, in the form of trace_events.hpp.
#pragma once
#include <rankc/runtime/engine.hpp>

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace rankc::runtime {

class trace_file {
 public:
  /// Errors: failure (1) when a file cannot be made there.
  explicit trace_file(const std::filesystem::path&);

  /// Write the step and say where it is. Errors: failure (1) when it cannot be written; what was there stays.
  std::string write(const description&, std::int64_t step, std::span<const traced>);

 private:
  std::filesystem::path file_;
};

}  // namespace rankc::runtime
