// SPDX-License-Identifier: Apache-2.0
#include "rules.hpp"

#include <algorithm>
#include <array>

namespace rankc::style {

bool is_public_header(std::string_view path) {
  constexpr std::array<std::string_view, 3> parts{"dsl/", "codegen/", "runtime/"};
  constexpr std::array<std::string_view, 4> endings{".hpp", ".cuh", ".ipp", ".h"};
  return std::any_of(parts.begin(), parts.end(), [&](auto one) { return path.starts_with(one); }) &&
         path.find("/rankc/") != std::string_view::npos &&
         std::any_of(endings.begin(), endings.end(), [&](auto one) { return path.ends_with(one); });
}

std::vector<finding> check(std::string_view path, std::string_view text) {
  const lexed lines = lex(text);
  const code source(lines.tokens);
  std::vector<finding> found = long_lines(lines);
  const auto add = [&](const std::vector<finding>& more) {
    found.insert(found.end(), more.begin(), more.end());
  };
  add(comma_statements(source));
  add(nested_conditionals(source));
  if (path.starts_with("runtime/")) add(dropped_statuses(source));
  if (is_public_header(path)) add(namespace_imports(source));
  std::stable_sort(found.begin(), found.end(), [](auto& a, auto& b) { return a.line < b.line; });
  return found;
}

}  // namespace rankc::style
