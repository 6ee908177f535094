// SPDX-License-Identifier: Apache-2.0
// The mask next to a token file. It marks the tokens that are labels of the loss.
#pragma once
#include <rankc/trainer/mapped_file.hpp>

#include <cstdint>
#include <filesystem>
#include <string>

namespace rankc::runtime {

class token_mask {
 public:
  /// Opens and checks the mask of `tokens_file`, which holds `tokens` tokens.
  /// Errors: failure (1) that names the file if it is not a mask, has another length, or has a byte that is
  /// neither 0 nor 1.
  token_mask(const std::filesystem::path&, const std::string& tokens_file, std::uint64_t tokens);

  const std::string& name() const { return file_.name(); }
  /// True if token `i` is a label.
  bool counts(std::uint64_t i) const;
  /// The number of tokens that are labels.
  std::uint64_t counted() const { return counted_; }
  /// The length of the sequences that examples are packed into; 0: not packed.
  std::uint32_t packed() const { return packed_; }

 private:
  mapped_file file_;
  std::uint64_t counted_ = 0;
  std::uint32_t packed_ = 0;
};

}  // namespace rankc::runtime
