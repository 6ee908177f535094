// SPDX-License-Identifier: Apache-2.0
// The times of one step in a file, in the form of trace_events.hpp.
#pragma once
#include <rankc/runtime/engine.hpp>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>

namespace rankc::runtime {

class trace_file {
 public:
  /// Begin a file. Errors: failure (1) when it cannot be opened.
  explicit trace_file(const std::filesystem::path&);

  /// Write the step and say where it is. Errors: failure (1) when it cannot be written.
  std::string write(const description&, std::int64_t step, std::span<const traced>);

 private:
  std::string name_;
  std::ofstream out_;
};

}  // namespace rankc::runtime
