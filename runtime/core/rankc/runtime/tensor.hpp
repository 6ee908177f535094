// SPDX-License-Identifier: Apache-2.0
// The values of generated text: arena offsets with element type and shape. An operand of a wrong shape does
// not compile, and calls pass no sizes.
#pragma once
#include <rankc/runtime/program.hpp>

namespace rankc::runtime {

/// Contiguous elements.
template <class T, std::size_t Count>
struct vector {
  at where;
  using element = T;
  static constexpr std::size_t count = Count;
  /// The offset of an element.
  constexpr at operator[](std::size_t element) const { return where + element * sizeof(T); }
};

/// Rows of elements, `Stride` elements apart. The stride is more than a row if they are columns of wider
/// rows.
template <class T, std::size_t Rows, std::size_t Columns, std::size_t Stride = Columns>
struct matrix {
  at where;
  using element = T;
  static constexpr std::size_t count = Rows * Columns, bytes = count * sizeof(T);
  /// `Count` columns from `first` on.
  template <std::size_t Count>
  constexpr matrix<T, Rows, Count, Stride> columns(std::size_t first) const {
    return {where + first * sizeof(T)};
  }
};

/// The tensor that layers pass on if routers keep statistics: the rows, and the statistics `Offset` bytes
/// after the start of the rows.
template <class Rows, class Statistics, std::size_t Offset>
struct stream {
  at where;
  Rows rows{where};
  Statistics statistics{where + Offset};
  static constexpr std::size_t bytes = Offset + Statistics::bytes;
  static_assert(Offset >= Rows::bytes);
};

/// Scratch memory of a kernel. Its contents are undefined before and after the kernel.
struct workspace {
  at where;
};

/// A size that no operand's type contains.
template <std::size_t N>
struct size_constant {};
template <std::size_t N>
inline constexpr size_constant<N> size{};

/// A kernel that sums either overwrites its result or adds to it.
enum class store { overwrite, add };

/// The kind of step, for layers that differ between the two.
enum class step { train, evaluate };

}  // namespace rankc::runtime
