// SPDX-License-Identifier: Apache-2.0
// Byte-pair encoding of a word. Its bytes become tokens, and pairs of tokens are merged, the pair with the
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

/// The token that a pair merges into. Pairs of a lower rank are merged first.
struct merge_rule {
  std::uint32_t rank = 0;
  std::int32_t token = 0;
};

/// The model of a tokenizer. `initial`: the tokens of each byte; empty: the vocabulary has no token for it.
/// `whole`: tokens of whole words, by their bytes, that are used without merges (ignore_merges).
struct byte_pair_rules {
  std::array<std::vector<std::int32_t>, 256> initial;
  pair_table<merge_rule> merges;
  text_table<std::int32_t> whole;
};

class byte_pairs {
 public:
  explicit byte_pairs(byte_pair_rules rules);

  /// Appends the tokens of a word that is not empty. The time is proportional to n log n for a word of n
  /// bytes.
  /// Errors: failure (1) for a byte without a token.
  void encode(std::string_view word, std::vector<std::int32_t>& to);

 private:
  struct symbol {
    std::int32_t token, previous, next;  // -1: none
    bool is_merged;                      // into the previous symbol
  };
  struct candidate {
    std::uint32_t rank;
    std::int32_t place, left, right, token;  // the first symbol's index, and the tokens
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
  std::vector<remembered> words_;      // by hash; a word replaces another one in its slot
};

}  // namespace rankc::runtime
