// SPDX-License-Identifier: Apache-2.0
// Byte-pair encoding of a word: its bytes become tokens, and pairs of tokens are merged, the pair of the
// lowest rank first.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pair_table.hpp"
#include "vocabulary.hpp"

namespace rankc::runtime {

/// The token that a pair becomes. Pairs of a lower rank are merged first.
struct merge_rule {
  std::uint32_t rank = 0;
  std::int32_t token = 0;
};

/// The model of a tokenizer. `initial`: the tokens of each byte; none: the vocabulary has no token for it.
/// `whole`: tokens of whole words, by their bytes, which no merge has to make (ignore_merges).
struct byte_pair_rules {
  std::array<std::vector<std::int32_t>, 256> initial;
  pair_table<merge_rule> merges;
  text_table<std::int32_t> whole;
};

class byte_pairs {
 public:
  explicit byte_pairs(byte_pair_rules rules);

  /// Append the tokens of a word that is not empty. It takes time proportional to n log n for a word of n
  /// bytes.
  /// Errors: failure (1) for a byte without a token.
  void encode(std::string_view word, std::vector<std::int32_t>& to);

 private:
  struct symbol {
    std::int32_t token, previous, next;  // -1: none
    bool is_merged;                      // into the symbol before it
  };
  struct candidate {
    std::uint32_t rank;
    std::int32_t place, left, right, token;  // the first symbol's place, and the tokens
  };
  struct remembered {
    std::string word;
    std::vector<std::int32_t> tokens;
  };

  void merge_all(std::string_view word, std::vector<std::int32_t>& to);
  void place_symbols(std::string_view word);
  symbol& at(std::int32_t place) { return symbols_[static_cast<std::size_t>(place)]; }
  static bool is_later(const candidate& a, const candidate& b);
  bool add_candidate(std::int32_t place);
  void merge(const candidate& best);

  byte_pair_rules rules_;
  std::vector<symbol> symbols_;
  std::vector<candidate> candidates_;  // a heap
  std::vector<remembered> words_;      // by their hashes; a word replaces another one
};

}  // namespace rankc::runtime
