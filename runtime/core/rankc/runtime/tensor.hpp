// SPDX-License-Identifier: Apache-2.0
// The values of generated text: places in a rank's arena with element type and shape, so that an operand that
// does not fit does not compile, and no size is passed.
#pragma once
#include <rankc/runtime/program.hpp>

namespace rankc::runtime {

/// Elements side by side.
template <class T, std::size_t Count>
struct vector {
  at where;
  using element = T;
  static constexpr std::size_t count = Count;
  /// Where an element lies.
  constexpr at operator[](std::size_t element) const { return where + element * sizeof(T); }
};

/// Rows of elements, `Stride` elements apart: more than a row where they are columns of wider rows.
template <class T, std::size_t Rows, std::size_t Columns, std::size_t Stride = Columns>
struct matrix {
  at where;
  using element = T;
  static constexpr std::size_t count = Rows * Columns, bytes = count * sizeof(T);
  /// As many columns from one on.
  template <std::size_t Count>
  constexpr matrix<T, Rows, Count, Stride> columns(std::size_t first) const {
    return {where + first * sizeof(T)};
  }
};

/// What goes from layer to layer where routers keep statistics: rows, and these `Offset` bytes behind their
/// begin.
template <class Rows, class Statistics, std::size_t Offset>
struct stream {
  at where;
  Rows rows{where};
  Statistics statistics{where + Offset};
  static constexpr std::size_t bytes = Offset + Statistics::bytes;
  static_assert(Offset >= Rows::bytes);
};

/// Memory of a kernel that holds nothing before and after it.
struct workspace {
  at where;
};

/// A size that no operand's type says.
template <std::size_t N>
struct size_constant {};
template <std::size_t N>
inline constexpr size_constant<N> size{};

/// What a kernel that sums does with what is there.
enum class store { overwrite, add };

/// What a rank runs, to a layer that does not do the same in both.
enum class step { train, evaluate };

}  // namespace rankc::runtime
