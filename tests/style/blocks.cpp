// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "lexer.hpp"
#include "words.hpp"

namespace rankc::style {
namespace {

std::string_view trimmed(std::string_view line, std::string_view of = " \t\r") {
  const std::size_t begin = line.find_first_not_of(of);
  if (begin == std::string_view::npos) return {};
  return line.substr(begin, line.find_last_not_of(of) + 1 - begin);
}

// Joins lines that follow each other to blocks.
class gatherer {
 public:
  void add(int line, std::string_view text) {
    if (!open_) all_.push_back({line, {}});
    if (open_) all_.back().text += ' ';
    all_.back().text += text;
    open_ = true;
  }
  void end() { open_ = false; }
  std::vector<block> all() {
    std::erase_if(all_, [](const block& one) { return one.text.empty(); });
    return std::move(all_);
  }

 private:
  std::vector<block> all_;
  bool open_ = false;
};

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

std::string_view text_of(std::string_view comment) { return trimmed(trimmed(comment), "/!<# \t"); }

std::vector<block> comments_of_source(std::string_view text) {
  const lexed source = lex(text);
  gatherer found;
  std::size_t next = 0;
  const char* code_end = text.data();
  for (std::size_t i = 0; i < source.lines.size(); ++i) {
    const std::string_view line = source.lines[i];
    const int number = static_cast<int>(i) + 1;
    for (; next < source.tokens.size() && source.tokens[next].line <= number; ++next)
      code_end = source.tokens[next].text.data() + source.tokens[next].text.size();
    const std::size_t code = code_end > line.data() ? static_cast<std::size_t>(code_end - line.data()) : 0;
    const std::size_t at = line.find("//", code);  // a raw string ends on a later line: code is past this one
    const bool is_comment = at != std::string_view::npos && !trimmed(line).starts_with('#');
    if (code > 0 || !is_comment) found.end();
    if (is_comment && line.find("SPDX") == std::string_view::npos)
      found.add(number, text_of(line.substr(at)));
    if (code > 0) found.end();
  }
  return found.all();
}

std::vector<block> comments_of_script(std::string_view text) {
  gatherer found;
  int number = 0;
  for (const std::string_view each : lines_of(text)) {
    const std::string_view line = trimmed(each);
    ++number;
    if (!line.starts_with('#') || line.find("SPDX") != std::string_view::npos) found.end();
    else found.add(number, text_of(line));
  }
  return found.all();
}

std::vector<block> paragraphs_of(std::string_view text) {
  gatherer found;
  bool is_code = false;
  int number = 0;
  for (const std::string_view line : lines_of(text)) {
    ++number;
    const bool is_fence = line.starts_with("```");
    if (is_fence) is_code = !is_code;
    const bool is_prose = !is_fence && !is_code && !trimmed(line).empty() && !line.starts_with("    ") &&
                          std::string_view("|#<!").find(line.front()) == std::string_view::npos;
    if (line.starts_with("- ")) found.end();
    if (is_prose) found.add(number, trimmed(line, " \t\r-"));
    else found.end();
  }
  return found.all();
}

}  // namespace

std::vector<block> blocks_of(std::string_view path, std::string_view text) {
  if (path.ends_with(".md")) return paragraphs_of(text);
  if (path.ends_with(".cmake") || path.ends_with(".py") || path.ends_with("CMakeLists.txt"))
    return comments_of_script(text);
  return comments_of_source(text);
}

}  // namespace rankc::style
