// SPDX-License-Identifier: Apache-2.0
// A step of pre-tokenization that splits a text at the matches of a pattern.
#pragma once
#include <algorithm>
#include <cstddef>
#include <string_view>

#include "pattern.hpp"

namespace rankc::runtime {

/// The treatment of a match: removed, a separate piece, or joined with the piece before or after it.
/// `contiguous` joins adjacent matches.
enum class match_place { removed, isolated, merged_with_previous, merged_with_next, contiguous };

struct split {
  pattern what;
  match_place place;
  bool inverted = false;  // the texts between the matches are treated as the matches
};

/// Calls `visit` with each piece of a text, in order. No piece is empty.
/// Errors: those of `pattern::find`, and those of `visit`.
template <class Visit>
void for_each_piece(const split& by, std::string_view text, const Visit& visit) {
  std::size_t begin = 0, end = 0;  // the current piece, which may still grow
  bool is_match = false;
  const auto flush = [&] {
    if (begin < end && !(is_match && by.place == match_place::removed))
      visit(text.substr(begin, end - begin));
  };
  const auto joins = [&](bool next_is_match) {
    switch (by.place) {
      case match_place::contiguous:
        return is_match == next_is_match;
      case match_place::merged_with_previous:
        return next_is_match && !is_match;
      case match_place::merged_with_next:
        return is_match && !next_is_match;
      default:
        return false;
    }
  };
  const auto add = [&](std::size_t until, bool next_is_match) {
    if (until == end) return;
    if (begin == end || !joins(next_is_match)) {
      flush();
      begin = end;
    }
    end = until;
    is_match = next_is_match;
  };
  pattern::match found{};
  while (end < text.size() && by.what.find(text, end, found)) {
    add(found.begin, by.inverted);
    add(found.end, !by.inverted);
  }
  add(text.size(), by.inverted);
  flush();
}

}  // namespace rankc::runtime
