// SPDX-License-Identifier: Apache-2.0
// The flags of `rankc search`. They make a line of JSON.
#pragma once
#include <CLI/CLI.hpp>

#include <optional>

#include "plan_request.hpp"
#include "search.hpp"

namespace rankc::tool {

class search_flags {
 public:
  explicit search_flags(CLI::App& command);
  search_flags(const search_flags&) = delete;

  /// The line; nothing without a flag.
  std::optional<json> line() const;

  const plan_files& files() const { return files_; }
  /// True if the answer is printed as a JSON line.
  bool as_json() const { return as_json_; }

 private:
  void add_models(CLI::App&);
  /// Adds an option whose value is a field of an object.
  static CLI::Option* text(CLI::App&, const char* flag, json& into, const char* field, const char* help);
  static CLI::Option* whole(CLI::App&, const char* flag, json& into, const char* field, const char* help);

  plan_files files_;
  json line_ = json::object(), sizes_ = json::object(), recipe_ = json::object();
  bool as_json_ = false;
};

}  // namespace rankc::tool
