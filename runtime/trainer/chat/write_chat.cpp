// SPDX-License-Identifier: Apache-2.0
#include <rankc/runtime/failure.hpp>

#include <utility>

#include "chat_text.hpp"
#include "tokenizer/utf8.hpp"

namespace rankc::runtime {
namespace {

/// Python's str.isspace of one code point.
bool is_python_space(char32_t code) { return is_white_space(code) || (code >= 0x1c && code <= 0x1f); }

/// Python's str.strip of valid UTF-8.
std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_python_space(first_code_point(text)))
    text.remove_prefix(first_sequence(text).bytes);
  while (!text.empty() && is_python_space(first_code_point(last_sequence(text))))
    text.remove_suffix(last_sequence(text).size());
  return text;
}

std::string with_date(std::string_view text, std::string_view date) {
  constexpr std::string_view place = "{date}";
  std::string out(text);
  if (const std::size_t at = out.find(place); at != out.npos) out.replace(at, place.size(), date);
  return out;
}

class chat_writer {
 public:
  chat_writer(const chat_form& form, std::string_view date, const std::string& name)
      : form_(form), name_(name) {
    to_.text = with_date(form.begin, date);
  }

  /// Writes message `i`.
  void add(std::size_t i, const chat_message& message, bool is_last) {
    write(i, message, is_last);
    to_.message_ends.push_back(to_.text.size());
  }

  chat_text take() {
    if (!system_.empty())
      throw failure(1,
                    "RC6722: {}: the template {} puts a system message into the user's message after it, and "
                    "no user message follows",
                    name_, form_.name);
    return std::move(to_);
  }
  std::string text() const { return to_.text; }

 private:
  void write(std::size_t i, const chat_message& message, bool is_last) {
    if (message.role == "system" && !is_system_turn(i, message)) return;
    const chat_turn* const turn = form_.find(message.role);
    if (turn == nullptr)
      throw failure(1, "RC6721: {}: message {} has the role {}; the template {} has {}", name_, i,
                    message.role, form_.name, form_.roles());
    check_order(i, *turn);
    const bool is_label = turn == &form_.assistant();
    const std::size_t label_begin = to_.text.size() + form_.prompt.size();
    to_.text += turn->begin;
    to_.text += std::exchange(system_, "");
    to_.text += form_.trims ? trimmed(message.content) : std::string_view(message.content);
    to_.text += is_label && is_last && !form_.last_end.empty() ? form_.last_end : turn->end;
    if (is_label) to_.labels.push_back({label_begin, to_.text.size()});
    to_.text += turn->behind;
  }

  /// True if a system message has a separate turn. A message that is part of the user's turn is kept for that
  /// turn. An empty first message is left out if the template requires it to be first, as in the models'
  /// templates.
  bool is_system_turn(std::size_t i, const chat_message& message) {
    if (form_.system == system_place::anywhere) return true;
    if (i > 0)
      throw failure(
          1,
          "RC6723: {}: message {} is a system message; in the template {} only the first message may be one",
          name_, i, form_.name);
    if (form_.system == system_place::first) return !message.content.empty();
    system_ = message.content + std::string(form_.joins_system);
    return false;
  }

  void check_order(std::size_t i, const chat_turn& turn) {
    const bool is_assistant = &turn == &form_.assistant();
    if (form_.alternates && is_assistant != after_user_)
      throw failure(1,
                    "RC6724: {}: message {} has the role {}; in the template {} user and assistant "
                    "alternate, and the user begins",
                    name_, i, turn.role, form_.name);
    after_user_ = !is_assistant;
  }

  const chat_form& form_;
  const std::string& name_;
  chat_text to_;
  std::string system_;  // prefix of the next user turn
  bool after_user_ = false;
};

}  // namespace

chat_text write_chat(const chat_form& form, const std::vector<chat_message>& messages, std::string_view date,
                     const std::string& name) {
  chat_writer to(form, date, name);
  for (std::size_t i = 0; i < messages.size(); ++i) to.add(i, messages[i], i + 1 == messages.size());
  return to.take();
}

std::string write_chat_prompt(const chat_form& form, const std::string& content, std::string_view date) {
  const std::string name = "--prompt";
  chat_writer to(form, date, name);
  to.add(0, {"user", content}, false);
  return to.text() + std::string(form.prompt);
}

}  // namespace rankc::runtime
