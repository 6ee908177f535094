// SPDX-License-Identifier: Apache-2.0
// A rank's arena over the field. A byte is a cell, and an element has as many cells as bytes. A read with
// another type than the write's, or of a partly overwritten element, gives a number drawn from the cells,
// from which no correct result follows.
#pragma once
#include "../numbers/matrix.hpp"

#include <rankc/codegen/program.hpp>

#include <cstddef>
#include <vector>

namespace field {

using rankc::codegen::element_type;

/// The bytes of an element; 0 for the type `bytes`.
inline std::size_t size_of(element_type t) {
  switch (t) {
    case element_type::e4m3:
    case element_type::e5m2:
    case element_type::e4m3_rows:
      return 1;
    case element_type::bf16:
      return 2;
    case element_type::i32:
    case element_type::f32:
      return 4;
    case element_type::f64:
      return 8;
    default:
      return 0;
  }
}

/// Whether an element is a sum over tokens, and its worst rounding: `in_bf16`, a collective sent its parts in
/// bf16; `narrowed`, it was stored in a type narrower than its addends or than f32.
enum class token_sum : std::uint8_t { none, wide, in_bf16, narrowed };

class memory {
 public:
  explicit memory(std::size_t bytes) : cells_(bytes) {}

  element load(std::size_t at, element_type type) const {
    const std::size_t size = check(at, type);
    const cell& first = cells_[at];
    bool is_whole = true;
    for (std::size_t k = 0; k < size; ++k) {
      const cell& c = cells_[at + k];
      is_whole &= c.part == k && c.type == type && c.of == first.of;
    }
    return is_whole ? first.of : garbage(at, size);
  }
  void store(std::size_t at, element_type type, element e, token_sum sum = token_sum::none) {
    const std::size_t size = check(at, type);
    if (e == 0) sum = token_sum::none;  // zero is exact in every type
    for (std::size_t k = 0; k < size; ++k) cells_[at + k] = {e, static_cast<std::uint8_t>(k), sum, type};
  }
  token_sum sum_at(std::size_t at) const { return at < cells_.size() ? cells_[at].sum : token_sum::none; }
  /// Overwrite bytes with pseudorandom content.
  void spoil(std::size_t begin, std::size_t end, std::uint64_t key) {
    for (std::size_t c = begin; c < end && c < cells_.size(); ++c) cells_[c] = {draw(mix(key, c))};
  }

 private:
  struct cell {
    element of = 0;
    std::uint8_t part = 0xFF;
    token_sum sum = token_sum::none;
    element_type type = element_type::bytes;
  };
  element garbage(std::size_t at, std::size_t size) const {
    std::uint64_t key = key_of("garbage");
    for (std::size_t k = 0; k < size; ++k) key = mix(mix(key, cells_[at + k].of), cells_[at + k].part);
    return draw(mix(key, at));
  }
  /// Check an access. Returns: the bytes of an element.
  std::size_t check(std::size_t at, element_type type) const {
    const std::size_t size = size_of(type);
    if (size == 0) throw malformed("an element of no bytes");
    if (at + size > cells_.size()) throw malformed("an element outside the arena");
    return size;
  }
  std::vector<cell> cells_;
};

}  // namespace field
