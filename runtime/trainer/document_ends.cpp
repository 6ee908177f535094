// SPDX-License-Identifier: Apache-2.0
#include "document_ends.hpp"

#include <rankc/runtime/failure.hpp>

#include <algorithm>

namespace rankc::runtime {
namespace {

constexpr std::uint64_t tokens_read = 1 << 20;
constexpr std::size_t sequences_read = 1024;

/// Whether one of the first sequences of Megatron's files ends with a token.
bool has_end_of_sequence(const token_stream& tokens, int end) {
  const auto& all = tokens.pieces();
  return std::any_of(all.begin(),
                     all.begin() + static_cast<std::ptrdiff_t>(std::min(all.size(), sequences_read)),
                     [&](const token_piece& sequence) {
                       std::int32_t last = -1;
                       if (sequence.count > 0) tokens.copy(sequence, sequence.count - 1, 1, &last);
                       return last == end;
                     });
}

bool has_token(const token_stream& tokens, int wanted) {
  std::vector<std::int32_t> first(std::min(tokens.size(), tokens_read));
  tokens.copy(0, first.size(), first.data());
  return std::find(first.begin(), first.end(), wanted) != first.end();
}

}  // namespace

std::vector<std::string> notes_on_documents(const description& about,
                                            const std::vector<opened_source>& sources) {
  const int end = about.end_of_document;
  std::vector<std::string> notes;
  if (end < 0) return notes;
  for (const opened_source& source : sources) {
    if (!source.tokens) continue;
    const bool by_sequence = source.tokens->has_sequences();
    if (by_sequence ? has_end_of_sequence(*source.tokens, end) : has_token(*source.tokens, end)) continue;
    notes.push_back(
        say("RC6199: the plan's end_of_document, token {}, is not found in {} ({}), so its documents attend "
            "to each other; append the token to each document where the data is made",
            end, source.from.path,
            by_sequence ? "at the ends of its first 1024 sequences" : "in its first 2^20 tokens"));
  }
  return notes;
}

}  // namespace rankc::runtime
