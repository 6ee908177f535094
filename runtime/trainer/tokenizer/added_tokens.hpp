// SPDX-License-Identifier: Apache-2.0
// Tokens that are found in a text before it is split into words, special tokens among them.
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

/// `single_word`: found only where no letter or digit touches it. `strips_left` and `strips_right`: it takes
/// the white space around it.
struct added_token {
  std::int32_t id = 0;
  std::string content;
  bool single_word = false, strips_left = false, strips_right = false;
};

class added_tokens {
 public:
  explicit added_tokens(std::vector<added_token> tokens);

  /// Call `text` and `token` with the pieces of a text, in order. Of tokens that match, the first in the text
  /// is taken, and of several there the longest.
  template <class Text, class Token>
  void split(std::string_view from, const Text& text, const Token& token) const {
    std::size_t done = 0;
    for (std::size_t at = 0; at < from.size();) {
      place found{};
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
  struct place {
    std::size_t begin, end;
    const added_token* of;
  };

  bool find(std::string_view from, std::size_t at, place&) const;
  const added_token* longest_at(std::string_view from) const;
  bool touches_word(std::string_view from, const place&) const;
  bool extend(std::string_view from, std::size_t done, place&) const;

  std::vector<added_token> tokens_;
  std::array<bool, 256> begins_{};           // whether a token begins with a byte
  pair_table<std::uint32_t> children_;       // of a trie: the node behind a node and a byte
  std::vector<std::int32_t> token_of_node_;  // its place in `tokens_`; -1: none
  pattern word_;                             // one letter of a word
};

}  // namespace rankc::runtime
