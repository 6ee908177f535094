// SPDX-License-Identifier: Apache-2.0
// The chat templates of model families: the texts that rankc writes around each message.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rankc::runtime {

/// A role and the texts around its messages.
struct chat_turn {
  std::string_view role;
  std::string_view begin, end;  // the model ends its own turn with `end`
  std::string_view behind{};    // follows `end`, before the next turn
};

/// The places that a template has for a system message.
enum class system_place { anywhere, first, first_user_turn };

/// A chat template. Its last turn is the assistant's.
struct chat_form {
  std::string_view name;
  std::string_view begin;  // text before a conversation; {date} stands for a date
  std::span<const chat_turn> turns;
  std::string_view prompt;  // the part of the assistant's turn that the prompt ends with
  system_place system = system_place::anywhere;
  std::string_view joins_system{};  // text after a system message that is part of the user's turn
  std::string_view last_end{};      // replaces `end` if the assistant ends the conversation
  bool trims = false;               // strip white space around each message
  bool alternates = false;          // the first turn is the user's, and user and assistant alternate

  constexpr const chat_turn& assistant() const { return turns.back(); }
  const chat_turn* find(std::string_view role) const;
  bool has_date() const { return begin.find("{date}") != begin.npos; }
  /// The special tokens that the texts spell, such as <|im_end|>, each once.
  std::vector<std::string> special_tokens() const;
  /// The roles, separated by commas.
  std::string roles() const;
};

/// Errors: failure (2) for a name that no template has.
const chat_form& chat_form_of(std::string_view name);

/// The names of all templates, separated by commas.
std::string chat_form_names();

/// Errors: failure (2) if the template states a date and the text is not one, and for any text if the
/// template states none.
void check_chat_date(const chat_form&, const std::string& date);

}  // namespace rankc::runtime
