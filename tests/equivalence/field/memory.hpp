// SPDX-License-Identifier: Apache-2.0
// A rank's arena over the field: two bytes are a cell, an element of 2, 4 or 8 bytes is so many cells. What is read
// where no such element was written, or half of one was written over, is drawn of what the cells have: no right result
// of it.
#pragma once
#include "matrix.hpp"

#include <rankc/codegen/program.hpp>

#include <cstddef>
#include <vector>

namespace field {

class memory {
 public:
  explicit memory(std::size_t bytes) : cells_((bytes + 1) / 2) {}

  element load(std::size_t at, std::size_t size) const {
    check(at, size);
    const cell& first = cells_[at / 2];
    std::uint64_t key = key_of("garbage");
    bool is_whole = true;
    for (std::size_t k = 0; k < size / 2; ++k) {
      const cell& c = cells_[at / 2 + k];
      is_whole &= c.part == k && c.size == size && c.of == first.of;
      key = mix(mix(key, c.of), c.part);
    }
    return is_whole ? first.of : draw(mix(key, at));
  }
  void store(std::size_t at, std::size_t size, element e) {
    check(at, size);
    for (std::size_t k = 0; k < size / 2; ++k)
      cells_[at / 2 + k] = {e, static_cast<std::uint8_t>(k), static_cast<std::uint8_t>(size)};
  }
  /// Leave nothing of what bytes held.
  void spoil(std::size_t begin, std::size_t end, std::uint64_t key) {
    for (std::size_t c = begin / 2; c < (end + 1) / 2 && c < cells_.size(); ++c)
      cells_[c] = {draw(mix(key, c)), 0xFF, 0};
  }

 private:
  struct cell {
    element of = 0;
    std::uint8_t part = 0xFF, size = 0;
  };
  void check(std::size_t at, std::size_t size) const {
    if (size < 2 || at % 2) throw malformed("an element begins within another");
    if (at / 2 + size / 2 > cells_.size()) throw malformed("an element outside the arena");
  }
  std::vector<cell> cells_;
};

/// Units: bytes. 0 of bytes that are no elements.
inline std::size_t size_of(rankc::codegen::element_type t) {
  using rankc::codegen::element_type;
  switch (t) {
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

}  // namespace field
