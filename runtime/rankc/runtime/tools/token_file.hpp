// SPDX-License-Identifier: Apache-2.0
// Tokens from disk: text read as bytes, a directory of text files, or a token file of llm.c. Everything that
// can be wrong with such a file is found here, before a rank starts.
#pragma once
#include <cstdint>
#include <filesystem>
#include <vector>

namespace rankc::runtime {

struct token_file {
  std::vector<std::uint16_t> tokens;
  int files = 1;
  bool text = false;  // tokens are bytes
};

/// Read a .txt file or every text file below a directory as bytes, or a .bin file of uint16 tokens.
/// A directory is read in the order of its sorted paths, without files that hold a NUL byte, folders whose
/// names begin with a dot or with "build", and links.
/// Errors: failure (1) for what cannot be read, is truncated, or holds a token that is not below `vocab`.
/// Source: llm.c for .bin: 256 int32 (magic 20240520, version 1, token count), then the tokens.
token_file read_tokens(const std::filesystem::path&, int vocab);

/// Entropy of the distribution of single tokens: the loss of a model that knows frequencies and no context.
/// Units: nats per token.
double unigram_entropy(const std::vector<std::uint16_t>& tokens);

}  // namespace rankc::runtime
