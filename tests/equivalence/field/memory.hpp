// SPDX-License-Identifier: Apache-2.0
// A rank's arena over the field: a byte is a cell, an element is as many cells as it has bytes. What is read
// where no such element was written, or a part of one was written over, is drawn of what the cells have: no
// right result of it.
#pragma once
#include "matrix.hpp"

#include <rankc/codegen/program.hpp>

#include <cstddef>
#include <vector>

namespace field {

class memory {
 public:
  explicit memory(std::size_t bytes) : cells_(bytes) {}

  element load(std::size_t at, std::size_t size) const {
    check(at, size);
    const cell& first = cells_[at];
    bool is_whole = true;
    for (std::size_t k = 0; k < size; ++k) {
      const cell& c = cells_[at + k];
      is_whole &= c.part == k && c.size == size && c.of == first.of;
    }
    return is_whole ? first.of : garbage(at, size);
  }
  void store(std::size_t at, std::size_t size, element e) {
    check(at, size);
    for (std::size_t k = 0; k < size; ++k)
      cells_[at + k] = {e, static_cast<std::uint8_t>(k), static_cast<std::uint8_t>(size)};
  }
  /// Leave nothing of what bytes held.
  void spoil(std::size_t begin, std::size_t end, std::uint64_t key) {
    for (std::size_t c = begin; c < end && c < cells_.size(); ++c) cells_[c] = {draw(mix(key, c)), 0xFF, 0};
  }

 private:
  struct cell {
    element of = 0;
    std::uint8_t part = 0xFF, size = 0;
  };
  element garbage(std::size_t at, std::size_t size) const {
    std::uint64_t key = key_of("garbage");
    for (std::size_t k = 0; k < size; ++k) key = mix(mix(key, cells_[at + k].of), cells_[at + k].part);
    return draw(mix(key, at));
  }
  void check(std::size_t at, std::size_t size) const {
    if (size == 0) throw malformed("an element of no bytes");
    if (at + size > cells_.size()) throw malformed("an element outside the arena");
  }
  std::vector<cell> cells_;
};

/// Units: bytes. 0 of bytes that are no elements.
inline std::size_t size_of(rankc::codegen::element_type t) {
  using rankc::codegen::element_type;
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

}  // namespace field
