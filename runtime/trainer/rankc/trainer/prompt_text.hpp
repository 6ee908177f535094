// SPDX-License-Identifier: Apache-2.0
// Conversion between texts and tokens for `generate`, by a tokenizer.json or as bytes.
#pragma once
#include <rankc/runtime/program.hpp>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace rankc::runtime {

class tokenizer;
struct chat_form;

class prompt_text {
 public:
  /// `asked` is a file or folder, or "bytes". Empty: the tokenizer.json of `origin`, the folder that the run
  /// began with, if it can be read; else bytes. `notes` gets the reason if it cannot be read.
  /// Errors: failure (1) if the file that `asked` names cannot be read, or a tokenizer has more tokens than
  /// the plan; failure (2) if bytes are not tokens of the plan.
  prompt_text(const description&, const std::string& asked,
              const std::optional<std::filesystem::path>& origin, std::vector<std::string>& notes);
  ~prompt_text();

  bool is_of_bytes() const { return by_ == nullptr; }
  /// The tokens before every prompt.
  std::vector<std::int32_t> opening() const;
  std::vector<std::int32_t> tokens_of(const std::string& text) const;
  /// The tokens of a user's message by a chat template, up to the start of the assistant's turn.
  /// Errors: failure (1) if the tokenizer lacks a special token of the template.
  std::vector<std::int32_t> tokens_of_chat(const chat_form&, const std::string& message,
                                           const std::string& date) const;
  /// The tokens that end the assistant's turn; empty if text is bytes.
  std::vector<std::int32_t> ends_of(const chat_form&) const;
  /// The bytes of a token; <ID> for one without bytes.
  std::string text_of(std::int32_t token) const;

 private:
  std::unique_ptr<tokenizer> by_;  // null: bytes
  std::string name_;               // the tokenizer's file or folder
};

}  // namespace rankc::runtime
