// SPDX-License-Identifier: Apache-2.0
// The flags of `rankc dims` make the line that they stand for.
#pragma once
#include <CLI/CLI.hpp>

#include <map>
#include <optional>
#include <string>

#include "lines.hpp"

namespace rankc::tool {

class dims_flags {
 public:
  explicit dims_flags(CLI::App& command);
  dims_flags(const dims_flags&) = delete;

  /// The line, where there is any flag.
  std::optional<json> line() const;

 private:
  CLI::App& command_;
  std::map<std::string, std::string> texts_;  // by flag, what is written after it
};

}  // namespace rankc::tool
