// SPDX-License-Identifier: Apache-2.0
// The flags of `rankc search` make the line that they stand for.
#pragma once
#include <CLI/CLI.hpp>

#include <optional>

#include "plan_request.hpp"

namespace rankc::tool {

class search_flags {
 public:
  explicit search_flags(CLI::App& command);
  search_flags(const search_flags&) = delete;

  /// The line, where there is any flag.
  std::optional<json> line() const;

  const plan_files& files() const { return files_; }

 private:
  plan_files files_;
  json line_ = json::object();
};

}  // namespace rankc::tool
