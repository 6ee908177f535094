// SPDX-License-Identifier: Apache-2.0
// The fields of tokenizer.json, each read into its part of a tokenizer.
#pragma once
#include <cstdint>
#include <filesystem>
#include <vector>

#include "json_place.hpp"
#include "tokenizer.hpp"

namespace rankc::runtime {

/// Reads the model's vocabulary, merges and flags.
/// Errors: failure (1), as for the other fields.
void read_model(const json_place& model, tokenizer_parts& to);

/// Reads the patterns that split a text into words.
pre_tokenizer read_pre_tokenizer(const json_place& place);

/// Reads the tokens that post_processor, or the tokenizer_config.json next to the file, puts around a text.
void read_ends(const json_place& post_processor, const std::filesystem::path& file, tokenizer_parts& to);

}  // namespace rankc::runtime
