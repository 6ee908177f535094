// SPDX-License-Identifier: Apache-2.0
// An operand of an op: a matrix of elements, over the field or in f64. A vector is one row; a number is 1 x
// 1.
#pragma once
#ifdef FIELD_IN_F64
#include "f64.hpp"
#else
#include "field.hpp"
#endif

#include <stdexcept>
#include <string>
#include <vector>

namespace field {

/// A malformed program or model: sizes do not fit, an op is unknown, or bytes are outside the arena.
struct malformed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct extent {
  std::int64_t rows = 0, cols = 0;
  std::int64_t unit = 1;  // columns of a unit, such as a head
  std::int64_t size() const { return rows * cols; }
};

/// A tensor's dims as rows and columns.
inline extent extent_of(const std::vector<std::int64_t>& shape, std::int64_t unit) {
  if (shape.size() > 2) throw malformed("a tensor of more than two dims");
  for (std::int64_t n : shape)
    if (n < 0 || n > 1 << 20) throw malformed("a dim of " + std::to_string(n));
  const extent e{shape.size() == 2 ? shape[0] : 1, shape.empty() ? 1 : shape.back(), unit};
  if (e.size() > 1 << 22) throw malformed("a tensor that is not tiny");
  return e;
}

struct matrix {
  extent is;
  std::vector<element> of;

  matrix() = default;
  explicit matrix(extent e) : is(e), of(static_cast<std::size_t>(e.size())) {}
  element* row(std::int64_t r) { return of.data() + r * is.cols; }
  const element* row(std::int64_t r) const { return of.data() + r * is.cols; }
};

/// The key of a row, or of a part of one.
inline std::uint64_t key_of(std::uint64_t key, const element* row, std::int64_t count) {
  for (std::int64_t c = 0; c < count; ++c) key = mix(key, row[c]);
  return key;
}

}  // namespace field
