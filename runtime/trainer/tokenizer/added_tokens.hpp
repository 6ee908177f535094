// SPDX-License-Identifier: Apache-2.0
// Tokens that are searched in a text before it is split into words. Special tokens are among them.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pair_table.hpp"
#include "pattern.hpp"

namespace rankc::runtime {

/// `single_word`: matches only if no letter or digit touches it. `strips_left` and `strips_right`: the match
/// includes the adjacent white space.
struct added_token {
  std::int32_t id = 0;
  std::string content;
  bool single_word = false, strips_left = false, strips_right = false;
};

class added_tokens {
 public:
  explicit added_tokens(std::vector<added_token> tokens);

  /// Calls `text` and `token` with the pieces of a text, in order. Among matching tokens, the first in the
  /// text is taken, and at one position the longest.
  template <class Text, class Token>
  void split(std::string_view from, const Text& text, const Token& token) const {
    std::size_t done = 0;
    for (std::size_t at = 0; at < from.size();) {
      occurrence found{};
      if (!find(from, at, found)) break;
      at = found.end;
      if (!extend(from, done, found)) continue;
      if (done < found.begin) text(from.substr(done, found.begin - done));
      token(found.of->id);
      done = found.end;
    }
    if (done < from.size()) text(from.substr(done));
  }

 private:
  /// An added token in a text.
  struct occurrence {
    std::size_t begin, end;
    const added_token* of;
  };

  bool find(std::string_view from, std::size_t at, occurrence&) const;
  const added_token* longest_at(std::string_view from) const;
  bool touches_word(std::string_view from, const occurrence&) const;
  bool extend(std::string_view from, std::size_t done, occurrence&) const;

  std::vector<added_token> tokens_;
  std::array<bool, 256> begins_{};           // true if a token begins with the byte
  pair_table<std::uint32_t> children_;       // a trie: the child of a node for a byte
  std::vector<std::int32_t> token_of_node_;  // index into `tokens_`; -1: none
  pattern word_;                             // matches one letter of a word
};

}  // namespace rankc::runtime
