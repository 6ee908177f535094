// SPDX-License-Identifier: Apache-2.0
// The places of an operand's elements: those of a view, or of a whole access.
#pragma once
#include "memory.hpp"

#include <algorithm>
#include <vector>

namespace field {

/// Elements of one type, in row-major order.
struct operand {
  std::size_t begin = 0;  // byte offset of the first element
  element_type type = element_type::bytes;
  extent is;
  std::int64_t stride = 0;

  std::size_t at(std::int64_t r, std::int64_t c) const {
    return begin + static_cast<std::size_t>(r * stride + c) * size_of(type);
  }
  std::size_t bytes() const { return static_cast<std::size_t>(is.size()) * size_of(type); }
  /// Whether the two share a byte.
  bool meets(const operand& o) const {
    for (std::int64_t r = 0; r < is.rows; ++r)
      if (o.meets(at(r, 0), at(r, is.cols))) return true;
    return false;
  }
  bool meets(std::size_t first, std::size_t end) const {
    for (std::int64_t r = 0; r < is.rows; ++r)
      if (first < at(r, is.cols) && at(r, 0) < end) return true;
    return false;
  }
  bool same_place(const operand& o) const {
    return begin == o.begin && size_of(type) == size_of(o.type) && is.rows == o.is.rows &&
           is.cols == o.is.cols && (stride == o.stride || is.rows < 2);
  }
};

inline const rankc::codegen::access& access_of(const rankc::codegen::op& o, const rankc::codegen::view& v) {
  const auto& list = v.written ? o.writes : o.reads;
  const int first = v.accesses.first, count = v.accesses.count;
  if (first < 0 || count < 1 || static_cast<std::size_t>(first + count) > list.size())
    throw malformed("port '" + std::string(v.port) + "' is given an access that the op has not");
  return list[static_cast<std::size_t>(first)];
}

inline operand operand_of(const rankc::codegen::op& o, const rankc::codegen::view& v) {
  const rankc::codegen::access& a = access_of(o, v);
  operand p{a.begin + v.offset, a.type, extent_of({v.shape.begin(), v.shape.end()}, v.unit), v.stride};
  if (p.is.rows < 2) p.stride = p.is.cols;
  if (size_of(p.type) == 0) throw malformed("port '" + std::string(v.port) + "' has no elements");
  return p;
}

/// An access as one row of elements.
inline operand operand_of(const rankc::codegen::access& a) {
  const std::size_t size = size_of(a.type);
  if (size == 0 || a.end < a.begin || (a.end - a.begin) % size)
    throw malformed("an access of no whole elements");
  const auto count = static_cast<std::int64_t>((a.end - a.begin) / size);
  return {a.begin, a.type, {1, count}, count};
}

inline matrix load(const memory& m, const operand& p) {
  matrix out(p.is);
  for (std::int64_t r = 0; r < p.is.rows; ++r)
    for (std::int64_t c = 0; c < p.is.cols; ++c) out.row(r)[c] = m.load(p.at(r, c), p.type);
  return out;
}
inline void store(memory& m, const operand& p, const matrix& from, token_sum sum = token_sum::none) {
  for (std::int64_t r = 0; r < p.is.rows; ++r)
    for (std::int64_t c = 0; c < p.is.cols; ++c) m.store(p.at(r, c), p.type, from.row(r)[c], sum);
}
/// Whether an element of an operand is a sum over tokens.
inline token_sum sum_of(const memory& m, const operand& p) {
  token_sum sum = token_sum::none;
  for (std::int64_t r = 0; r < p.is.rows; ++r)
    for (std::int64_t c = 0; c < p.is.cols; ++c) sum = std::max(sum, m.sum_at(p.at(r, c)));
  return sum;
}

}  // namespace field
