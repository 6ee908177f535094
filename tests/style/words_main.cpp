// SPDX-License-Identifier: Apache-2.0
// rankc_words ALLOWED FILE...
//
// Prints the habits (words.hpp) of the comments and pages. A line of ALLOWED, `path count`, is the number of
// flagged blocks of a file; for other files it is zero. The exit code is 1 if a file has more, or fewer: the
// list only shrinks.
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>

#include "words.hpp"

namespace {

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct flagged {
  int line;
  std::string habit;
};

}  // namespace

int main(int count, char** arguments) {
  std::map<std::string, std::size_t> allowed;
  std::ifstream list(arguments[1]);
  std::string path;
  for (std::size_t most = 0; list >> path >> most;) allowed[path] = most;

  std::size_t all = 0, bad = 0;
  int wrong = 0;
  for (int i = 2; i < count; ++i) {
    std::vector<flagged> found;
    for (const rankc::style::block& one : rankc::style::blocks_of(arguments[i], contents(arguments[i]))) {
      ++all;
      const std::vector<std::string> habits = rankc::style::habits(one.text);
      if (!habits.empty()) found.push_back({one.line, habits.front()});
    }
    bad += found.size();
    const std::size_t most = allowed.contains(arguments[i]) ? allowed.at(arguments[i]) : 0;
    allowed.erase(arguments[i]);
    if (found.size() == most) continue;
    ++wrong;
    for (const flagged& one : found)
      std::cout << arguments[i] << ':' << one.line << ": " << one.habit << '\n';
    if (found.size() < most)
      std::cout << arguments[1] << ": " << arguments[i] << ' ' << most << ": the file has " << found.size()
                << "; lower the number, or remove the line\n";
  }
  for (const auto& [gone, most] : allowed)
    std::cout << arguments[1] << ": " << gone << ' ' << most << ": there is no such file; remove the line\n";
  std::cout << bad << " of " << all << " comments and paragraphs are flagged; " << wrong
            << " files differ from " << arguments[1] << '\n';
  return wrong == 0 && allowed.empty() ? 0 : 1;
}
