// SPDX-License-Identifier: Apache-2.0
// Conversations of JSON lines as examples, by a chat template.
#pragma once
#include <chat/chat_text.hpp>

#include <cstddef>
#include <filesystem>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "example.hpp"
#include "text_encoder.hpp"
#include "tokens.hpp"

namespace rankc::tool {

class chat_examples {
 public:
  /// Errors: failure (2) for an unknown template or a date that is missing or not needed; failure (1) for a
  /// model without one of the template's special tokens.
  chat_examples(const tokens_options&, const text_encoder&, std::optional<int> end);

  /// Calls `visit` with each conversation of a file, followed by the token `end`, which is not a label.
  /// Errors: failure (1) that names the line; also for a conversation that has the token `end`, and with
  /// --weights-field for a label without a weight.
  void for_each(const std::filesystem::path&, const visit_example& visit);

  /// Prints a note for each kind of conversation that may not be trained on as expected.
  void note(std::ostream&) const;

 private:
  example example_of(const std::string& line, const std::string& name);
  void add_weights(example&, const std::vector<runtime::chat_message>&,
                   const std::vector<std::size_t>& message_ends, const std::vector<std::size_t>& ends,
                   const std::string& name) const;
  void add_end(example&, const std::string& name) const;
  void count_spelled(const std::vector<runtime::chat_message>&, const std::string& name);

  const tokens_options& o_;
  const text_encoder& by_;
  std::optional<int> end_;
  const runtime::chat_form& form_;
  std::vector<std::string> special_tokens_;
  std::size_t examples_ = 0, without_labels_ = 0, spelled_ = 0;
  std::string first_spelled_;  // the line
};

}  // namespace rankc::tool
