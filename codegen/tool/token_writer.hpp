// SPDX-License-Identifier: Apache-2.0
// The files that `rankc tokens` writes: tokens in the format of llm.c, and next to them a mask and weights.
#pragma once
#include <rankc/runtime/output_file.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "example.hpp"

namespace rankc::tool {

struct token_format {
  bool wide = false;         // uint32 tokens
  bool masks = false;        // a mask is written
  bool weighs = false;       // weights are written
  std::uint32_t packed = 0;  // the length of packed sequences; 0: they are not packed
};

class token_writer {
 public:
  /// Errors: failure (1) if a file cannot be written, here and below.
  token_writer(const std::filesystem::path& out, const token_format&);

  /// Appends tokens. `labels` is ignored if no mask is written. With a mask, a token that is no label has the
  /// weight 0.
  /// Errors: failure (1) for more tokens than the header can count.
  void append(const example&);

  /// Completes the files and gives them their names.
  void finish();

  std::size_t tokens() const { return tokens_; }
  std::size_t labels() const { return counted_; }

 private:
  void flush();

  std::filesystem::path out_;
  token_format format_;
  runtime::output_file file_;
  std::optional<runtime::output_file> mask_, weights_;
  example held_;  // not yet written
  std::size_t tokens_ = 0, counted_ = 0;
};

/// The file with the name of a token file and another extension, such as mask_extension.
std::filesystem::path companion_of(std::filesystem::path tokens, std::string_view extension);

/// True if a file with this beginning is a mask.
bool is_token_mask(std::string_view beginning);

}  // namespace rankc::tool
