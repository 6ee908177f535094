// SPDX-License-Identifier: Apache-2.0
#include "brackets.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

namespace rankc::style {
namespace {

char closing_of(std::string_view opening) {
  if (opening == "(") return ')';
  if (opening == "[") return ']';
  return '}';
}

std::invalid_argument unpaired(const token& bracket) {
  return std::invalid_argument("line " + std::to_string(bracket.line) + ": " + std::string(bracket.text) +
                               " has no partner");
}

}  // namespace

code::code(std::vector<token> tokens) : tokens_(std::move(tokens)), partner_(tokens_.size(), no_token) {
  pair_balanced();
  pair_templates();
}

const token& code::operator[](std::size_t index) const {
  static constexpr token outside{token_kind::mark, "", 0};
  return index < tokens_.size() ? tokens_[index] : outside;
}

bool code::is_one_of(std::size_t index, std::initializer_list<std::string_view> texts) const {
  return std::find(texts.begin(), texts.end(), (*this)[index].text) != texts.end();
}

bool code::opens(std::size_t index) const { return partner_[index] != no_token && partner_[index] > index; }
bool code::closes(std::size_t index) const { return partner_[index] != no_token && partner_[index] < index; }

bool code::is_block(std::size_t index) const {
  for (std::size_t i = index + 1; i < partner_[index]; i = after(i))
    if (is_one_of(i, {";", "if", "for", "while", "do", "switch", "try"})) return true;
  return false;
}

bool code::is_capture(std::size_t index) const {
  const std::size_t before = index - 1;
  if (!is(index, "[") || is(index + 1, "[") || is(before, "[")) return false;
  if (is_word(before))
    return is_one_of(before, {"return", "co_return", "co_yield", "co_await", "throw", "case", "else", "do"});
  if (is(before, "}")) return is_block(partner_[before]);
  return !is_one_of(before, {")", "]"}) && !(is(before, ">") && partner_[before] != no_token);
}

void code::pair(std::size_t open, std::size_t close) {
  partner_[open] = close;
  partner_[close] = open;
}

void code::pair_balanced() {
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < size(); ++i) {
    if (is_one_of(i, {"(", "[", "{"})) open.push_back(i);
    if (!is_one_of(i, {")", "]", "}"})) continue;
    if (open.empty() || closing_of(tokens_[open.back()].text) != tokens_[i].text[0])
      throw unpaired(tokens_[i]);
    pair(open.back(), i);
    open.pop_back();
  }
  if (!open.empty()) throw unpaired(tokens_[open.back()]);
}

void code::pair_templates() {
  for (std::size_t i = 0; i < size(); ++i) {
    std::size_t end = no_token;
    if (is(i, "<<<")) end = end_of_launch(i);
    if (is(i, "<") && may_open_arguments(i)) end = end_of_arguments(i);
    if (end != no_token) pair(i, end);
  }
}

// A name, `operator()` or the captures of a lambda stand before template arguments or parameters.
bool code::may_open_arguments(std::size_t index) const {
  const std::size_t before = index - 1;
  if (is(before, "]")) return is_capture(partner_[before]);
  if (is(before, ")")) return is(partner_[before] - 1, "operator");
  return is_word(before) && !is_one_of(before, {"operator", "return"});
}

// A < without a matching > is less-than. Only template parameters have an = for a default.
std::size_t code::end_of_arguments(std::size_t open) const {
  const bool parameters = is(open - 1, "template") || is(open - 1, "]");
  for (std::size_t i = open + 1; i < size();) {
    if (is(i, ">")) return i;
    if (is_one_of(i, {";", "?", ")", "]", "}"}) || (is(i, "=") && !parameters)) return no_token;
    if (is(i, "<") && may_open_arguments(i)) {
      i = end_of_arguments(i);
      if (i == no_token) return no_token;
    }
    i = after(i);
  }
  return no_token;
}

std::size_t code::end_of_launch(std::size_t open) const {
  for (std::size_t i = open + 1; i < size(); i = after(i))
    if (is(i, ">") && is(i + 1, ">") && is(i + 2, ">")) return i + 2;
  return no_token;
}

}  // namespace rankc::style
