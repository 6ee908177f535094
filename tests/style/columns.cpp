// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "rules.hpp"

namespace rankc::style {
namespace {

constexpr int allowed = 110;

// A byte that continues a code point of UTF-8 is 10xxxxxx.
bool begins_code_point(char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }

bool is_include(std::string_view line) {
  const std::size_t begin = line.find_first_not_of(" \t");
  return begin != std::string_view::npos && line.substr(begin).starts_with("#include");
}

}  // namespace

std::vector<finding> long_lines(const lexed& source) {
  std::vector<finding> found;
  for (std::size_t i = 0; i < source.lines.size(); ++i) {
    const std::string_view line = source.lines[i];
    if (source.raw[i] || is_include(line)) continue;
    if (std::count_if(line.begin(), line.end(), begins_code_point) > allowed)
      found.push_back({static_cast<int>(i) + 1, "a line over 110 columns"});
  }
  return found;
}

}  // namespace rankc::style
