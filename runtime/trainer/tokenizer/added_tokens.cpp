// SPDX-License-Identifier: Apache-2.0
#include "added_tokens.hpp"

#include <algorithm>
#include <utility>

#include "utf8.hpp"

namespace rankc::runtime {
namespace {

// \w of Unicode's technical standard 18.
constexpr const char letter_of_word[] = R"([\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}])";

}  // namespace

added_tokens::added_tokens(std::vector<added_token> tokens)
    : tokens_(std::move(tokens)), token_of_node_(1, -1), word_(letter_of_word) {
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    std::uint32_t node = 0;
    for (const char c : tokens_[i].content) {
      const auto byte = static_cast<unsigned char>(c);
      if (node == 0) begins_[byte] = true;
      const std::uint32_t* child = children_.find(node, byte);
      const auto next = child == nullptr ? static_cast<std::uint32_t>(token_of_node_.size()) : *child;
      if (child == nullptr) {
        children_.set(node, byte, next);
        token_of_node_.push_back(-1);
      }
      node = next;
    }
    if (token_of_node_[node] < 0) token_of_node_[node] = static_cast<std::int32_t>(i);
  }
}

/// The longest token at the beginning of a text; null if there is none.
const added_token* added_tokens::longest_at(std::string_view from) const {
  const added_token* longest = nullptr;
  std::uint32_t node = 0;
  for (const char c : from) {
    const std::uint32_t* child = children_.find(node, static_cast<unsigned char>(c));
    if (child == nullptr) break;
    node = *child;
    if (token_of_node_[node] >= 0) longest = &tokens_[static_cast<std::size_t>(token_of_node_[node])];
  }
  return longest;
}

bool added_tokens::find(std::string_view from, std::size_t at, occurrence& found) const {
  for (; at < from.size(); ++at) {
    if (!begins_[static_cast<unsigned char>(from[at])]) continue;
    if (const added_token* token = longest_at(from.substr(at))) {
      found = {at, at + token->content.size(), token};
      return true;
    }
  }
  return false;
}

bool added_tokens::touches_word(std::string_view from, const occurrence& found) const {
  pattern::match letter{};
  const std::string_view before = from.substr(0, found.begin), behind = from.substr(found.end);
  return (!before.empty() && word_.find(last_sequence(before), 0, letter)) ||
         (!behind.empty() && word_.find(behind.substr(0, first_sequence(behind).bytes), 0, letter));
}

/// Extends a match by the white space that it strips.
/// Returns: false if the token must be a word and is part of one.
bool added_tokens::extend(std::string_view from, std::size_t done, occurrence& found) const {
  if (found.of->single_word && touches_word(from, found)) return false;
  while (found.of->strips_left && found.begin > done) {
    const std::string_view last = last_sequence(from.substr(0, found.begin));
    if (!is_white_space(first_code_point(last))) break;
    found.begin -= last.size();
  }
  while (found.of->strips_right && found.end < from.size() &&
         is_white_space(first_code_point(from.substr(found.end))))
    found.end += first_sequence(from.substr(found.end)).bytes;
  return true;
}

}  // namespace rankc::runtime
