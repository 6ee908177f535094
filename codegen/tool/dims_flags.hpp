// SPDX-License-Identifier: Apache-2.0
// The flags of `rankc dims`. They make a line of JSON.
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

  /// The line; nothing without a flag.
  std::optional<json> line() const;

 private:
  CLI::App& command_;
  std::map<std::string, std::string> texts_;  // the value of each flag
};

}  // namespace rankc::tool
