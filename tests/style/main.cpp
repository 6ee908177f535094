// SPDX-License-Identifier: Apache-2.0
// rankc_style FILE...
//
// Checks the files by all rules, and prints each finding as `file:line: rule: text`. The current folder is
// the root of the repository. The exit code is 1 if there is a finding.
#include <algorithm>
#include <exception>
#include <fstream>
#include <iostream>
#include <iterator>
#include <stdexcept>
#include <string>

#include "rules.hpp"

namespace {

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("it cannot be read");
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string_view line_of(std::string_view text, int number) {
  const std::string_view line = rankc::style::lex(text).lines.at(static_cast<std::size_t>(number) - 1);
  return line.substr(std::min(line.find_first_not_of(' '), line.size()));
}

std::size_t report(const std::string& path) {
  const std::string text = contents(path);
  const auto found = rankc::style::check(path, text);
  for (const auto& [line, rule] : found)
    std::cout << path << ':' << line << ": " << rule << ": " << line_of(text, line) << '\n';
  return found.size();
}

}  // namespace

int main(int count, char** arguments) {
  std::size_t found = 0;
  for (int i = 1; i < count; ++i) {
    try {
      found += report(arguments[i]);
    } catch (const std::exception& fault) {
      std::cout << arguments[i] << ": " << fault.what() << '\n';
      ++found;
    }
  }
  std::cout << count - 1 << " files, " << found << " findings\n";
  return found == 0 ? 0 : 1;
}
