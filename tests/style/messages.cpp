// SPDX-License-Identifier: Apache-2.0
#include "messages.hpp"

#include <algorithm>
#include <cctype>
#include <stdexcept>

namespace rankc::style {
namespace {

bool begins_with_id(std::string_view literal) {
  const auto is_digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  return literal.size() > 9 && literal.starts_with("\"RC") && literal.substr(7, 2) == ": " &&
         std::all_of(literal.begin() + 3, literal.begin() + 7, is_digit);
}

/// The characters between the quotes; a backslash stands for the character after it.
std::string characters(std::string_view literal) {
  std::string out;
  for (std::size_t i = 1; i + 1 < literal.size(); ++i) {
    if (literal[i] == '\\') ++i;
    out += literal[i];
  }
  return out;
}

bool is_string(const token& t) { return t.kind == token_kind::literal && t.text.front() == '"'; }

}  // namespace

std::vector<message> messages(const lexed& source) {
  std::vector<message> found;
  for (std::size_t i = 0; i < source.tokens.size(); ++i) {
    if (!is_string(source.tokens[i]) || !begins_with_id(source.tokens[i].text)) continue;
    const int line = source.tokens[i].line;
    std::string all;
    while (i < source.tokens.size() && is_string(source.tokens[i]))
      all += characters(source.tokens[i++].text);
    found.push_back({all.substr(0, 6), all.substr(8), line});
  }
  return found;
}

void message_list::add(std::string_view path, const message& m) {
  const auto where = [&] { return std::string(path) + ":" + std::to_string(m.line) + ": "; };
  if (m.text.find("{{") != std::string::npos)
    throw std::runtime_error(where() + m.id +
                             " would be printed with two braces; a hole is {}, a brace one {");
  const auto [by_id, is_new_id] = text_of_.emplace(m.id, m.text);
  if (by_id->second != m.text)
    throw std::runtime_error(where() + m.id + " is the id of another sentence, too");
  const auto [by_text, is_new_text] = id_of_.emplace(m.text, m.id);
  if (by_text->second != m.id)
    throw std::runtime_error(where() + m.id + " and " + by_text->second + " have the same sentence");
}

std::string message_list::text() const {
  std::string out;
  for (const auto& [id, text] : text_of_) out += id + ": " + text + "\n";
  return out;
}

}  // namespace rankc::style
