// SPDX-License-Identifier: Apache-2.0
// The flags of `rankc search` make the line that they stand for.
#pragma once
#include <CLI/CLI.hpp>

#include <optional>
#include <string>

#include "lines.hpp"

namespace rankc::tool {

class search_flags {
 public:
  explicit search_flags(CLI::App& command);
  search_flags(const search_flags&) = delete;

  /// The line, where there is any flag.
  std::optional<json> line() const;

  /// The file for the fastest plan; empty: none.
  const std::string& emits() const { return emits_; }

 private:
  std::string emits_;
  json line_ = json::object();
};

}  // namespace rankc::tool
