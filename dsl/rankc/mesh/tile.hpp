// SPDX-License-Identifier: Apache-2.0
// How one device cuts a matrix that it has into pieces. Pieces are counted: which rank has a matrix is said
// by axes of the mesh, and no axis can be named here.
#pragma once
#include <rankc/base/text.hpp>

#include <array>
#include <concepts>
#include <stdexcept>
#include <string>

namespace rankc::tile {

/// Sizes of a matrix, an element of it, or a piece by its place among the others. Shapes: (rows, columns).
using pair = std::array<long long, 2>;

/// What is done with a size that does not divide: it is refused, or every piece has the same room, of which
/// the last ones use less, or nothing.
enum class uneven : unsigned char { refused, padded };

/// Pieces by rows and by columns.
struct layout {
  pair pieces{1, 1};
  tile::uneven uneven = tile::uneven::refused;
  constexpr bool operator==(const layout&) const = default;
};

/// All in one piece; by the first dim; by the last; by both.
inline constexpr layout replicate{};
constexpr layout row_wise(std::integral auto pieces, uneven u = uneven::refused) { return {{pieces, 1}, u}; }
constexpr layout column_wise(std::integral auto pieces, uneven u = uneven::refused) {
  return {{1, pieces}, u};
}
template <std::integral auto Rows, std::integral auto Columns>
inline constexpr layout tiled{{Rows, Columns}};

/// Where a piece begins in the matrix, what it has of it, and the room for that.
struct piece {
  pair offset{}, extent{}, room{};
  constexpr bool operator==(const piece&) const = default;
};

/// The piece of a matrix at a place among the others.
/// Errors: std::invalid_argument where a size does not divide and is not padded, and for a place that is
/// none.
constexpr piece resolve(const layout& l, const pair& shape, const pair& at) {
  piece p;
  for (std::size_t d = 0; d < 2; ++d) {
    const long long n = l.pieces[d], size = shape[d];
    sentence why;
    if (n < 1 || at[d] < 0 || at[d] >= n)
      why << "piece " << at[d] << " of " << n << "; pieces are counted from 0";
    else if (size % n != 0 && l.uneven == uneven::refused)
      why << (d == 0 ? "rows=" : "columns=") << size << " do not divide into " << n
          << " pieces: take a divisor, or uneven::padded";
    if (!why.view().empty()) throw std::invalid_argument(std::string(why.view()));
    p.room[d] = (size + n - 1) / n;
    p.offset[d] = at[d] * p.room[d] < size ? at[d] * p.room[d] : size;
    p.extent[d] = size - p.offset[d] < p.room[d] ? size - p.offset[d] : p.room[d];
  }
  return p;
}

/// The element of the matrix that is one of a piece; and the other way.
constexpr pair lift(const piece& p, const pair& local) {
  return {p.offset[0] + local[0], p.offset[1] + local[1]};
}
constexpr pair lower(const piece& p, const pair& global) {
  return {global[0] - p.offset[0], global[1] - p.offset[1]};
}

}  // namespace rankc::tile
