// SPDX-License-Identifier: Apache-2.0
// The weights file next to a token file: the weight of each token as a label.
#pragma once
#include <rankc/trainer/mapped_file.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

namespace rankc::runtime {

/// The size below which a file of tokens or weights is checked completely when it is opened. A larger one is
/// checked as it is read.
/// Units: bytes.
inline constexpr std::size_t checked_whole = std::size_t{1} << 28;

class token_weights {
 public:
  /// Opens the weights of `tokens_file`, which holds `tokens` tokens: for each token a float32, little
  /// endian, and nothing else.
  /// Errors: failure (1) that names the file if it has another length, or a number that is no weight.
  token_weights(const std::filesystem::path&, const std::string& tokens_file, std::uint64_t tokens);

  const std::string& name() const { return file_.name(); }
  /// The weight of the loss of predicting token `i`.
  /// Errors: failure (1) if the number is no weight.
  float weight(std::uint64_t i) const;

 private:
  mapped_file file_;
};

/// Errors: failure (1): the plan reads no weights of labels, and this file has them.
[[noreturn]] void refuse_weights(const std::string& file);

}  // namespace rankc::runtime
