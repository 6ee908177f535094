// SPDX-License-Identifier: Apache-2.0
// Texts as tokens, and tokens as text, for `generate`: by a tokenizer.json, or as bytes.
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

class prompt_text {
 public:
  /// `asked` is a file or folder, or "bytes". Empty: the tokenizer.json of `origin`, the folder that the run
  /// began with, where it has one that can be read; else bytes. `notes` gets the reason why it cannot be.
  /// Errors: failure (1) where the file that `asked` names cannot be read, or a tokenizer has more tokens
  /// than the plan; failure (2) where bytes are not tokens of the plan.
  prompt_text(const description&, const std::string& asked,
              const std::optional<std::filesystem::path>& origin, std::vector<std::string>& notes);
  ~prompt_text();

  /// The tokens that stand before a prompt.
  std::vector<std::int32_t> opening() const;
  std::vector<std::int32_t> tokens_of(const std::string& text) const;
  /// The bytes of a token; <ID> for one without bytes.
  std::string text_of(std::int32_t token) const;

 private:
  std::unique_ptr<tokenizer> by_;  // null: bytes
};

}  // namespace rankc::runtime
