// SPDX-License-Identifier: Apache-2.0
#include "document_ends.hpp"

#include <rankc/runtime/failure.hpp>

#include <algorithm>

namespace rankc::runtime {
namespace {

constexpr std::uint64_t tokens_read = 1 << 20;
constexpr std::size_t sequences_read = 1024;

/// True if one of the first sequences of Megatron's files ends with the token.
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

/// True if the token ends a document near the beginning of the tokens.
bool has_end(const token_stream& tokens, int end) {
  return tokens.has_sequences() ? has_end_of_sequence(tokens, end) : has_token(tokens, end);
}

std::string note_without_end(const opened_source& source, int end) {
  const std::string& path = source.from.path;
  if (const std::uint64_t documents = source.tokens->documents(); documents > 1)
    return say(
        "RC6271: the plan's end_of_document, token {}, ends none of the first 1024 sequences of {}; its {} "
        "documents begin where the .idx file says",
        end, path, documents);
  return say(
      "RC6199: the plan's end_of_document, token {}, does not occur in {} ({}), so its documents attend to "
      "each other; append the token to each document when you make the data",
      end, path,
      source.tokens->has_sequences() ? "at the ends of its first 1024 sequences"
                                     : "in its first 2^20 tokens");
}

}  // namespace

std::vector<std::string> notes_on_documents(const description& about,
                                            const std::vector<opened_source>& sources) {
  const int end = about.end_of_document;
  std::vector<std::string> notes;
  if (end < 0) return notes;
  for (const opened_source& source : sources)
    if (source.tokens && !has_end(*source.tokens, end)) notes.push_back(note_without_end(source, end));
  return notes;
}

}  // namespace rankc::runtime
