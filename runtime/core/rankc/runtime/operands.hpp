// SPDX-License-Identifier: Apache-2.0
// The tensors that a call of generated text has to do with, found in its struct of named operands, and what
// it is called.
#pragma once
#include <rankc/runtime/call_names.hpp>
#include <rankc/runtime/tensor.hpp>

#include <array>
#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>

namespace rankc::runtime {

/// Numbers in a rank's arena: rows of as many columns, `stride` elements apart.
struct operand {
  at where;
  std::size_t rows, columns, stride;
  dtype type;
};

inline constexpr std::size_t most_operands = 20;

/// What a call is: its tensors of f32 and f64 in their order, the text of its type (call_names.hpp), and its
/// message's name, or null.
struct operand_list {
  const std::byte* call = nullptr;
  const char *type = nullptr, *site = nullptr;
  std::size_t offset = 0, count = 0;
  std::array<operand, most_operands> tensors{};
  std::span<const operand> all() const { return std::span(tensors).first(count); }
};

namespace detail {

/// Rows 0: no tensor of f32 or f64.
struct extent {
  std::size_t rows = 0, columns = 0, stride = 0;
  dtype type = dtype::f32;
};
template <class T>
inline constexpr extent extent_of{};
template <std::size_t N>
inline constexpr extent extent_of<vector<float, N>>{1, N, N, dtype::f32};
template <std::size_t N>
inline constexpr extent extent_of<vector<double, N>>{1, N, N, dtype::f64};
template <std::size_t R, std::size_t C, std::size_t S>
inline constexpr extent extent_of<matrix<float, R, C, S>>{R, C, S, dtype::f32};
template <std::size_t R, std::size_t C, std::size_t S>
inline constexpr extent extent_of<matrix<double, R, C, S>>{R, C, S, dtype::f64};
template <class Rows, class Statistics, std::size_t Offset>
inline constexpr extent extent_of<stream<Rows, Statistics, Offset>> = extent_of<Rows>;

/// The next member of the call.
[[gnu::noinline]] inline void add_member(operand_list& list, std::size_t bytes, std::size_t alignment,
                                         const extent& e) {
  list.offset = (list.offset + alignment - 1) / alignment * alignment;
  if (e.rows > 0)
    list.tensors[list.count++] = {*reinterpret_cast<const at*>(list.call + list.offset), e.rows, e.columns,
                                  e.stride, e.type};
  list.offset += bytes;
}

/// Becomes whatever member is wanted in its place, and lists that.
struct any_member {
  operand_list* list;
  template <class T>
  operator T() const {
    add_member(*list, sizeof(T), alignof(T), extent_of<T>);
    return T{};
  }
};

template <class Call, std::size_t... I>
constexpr bool has_members(std::index_sequence<I...>) {
  return requires(any_member m) { Call{(static_cast<void>(I), m)...}; };
}

/// How many members a call has, which C++ says by trying alone.
template <class Call, std::size_t Least = 1, std::size_t Most = most_operands>
constexpr std::size_t count_members() {
  if constexpr (Least == Most) return Least;
  else {
    constexpr std::size_t middle = (Least + Most + 1) / 2;
    if constexpr (has_members<Call>(std::make_index_sequence<middle>{}))
      return count_members<Call, middle, Most>();
    else return count_members<Call, Least, middle - 1>();
  }
}

template <class Call, std::size_t... I>
void list_members(operand_list& list, std::index_sequence<I...>) {
  const any_member m{&list};
  static_cast<void>(Call{(static_cast<void>(I), m)...});
}

}  // namespace detail

template <class Call>
[[gnu::cold]] void describe(const void* call, operand_list& into) {
  static_assert(std::is_standard_layout_v<Call>);
  into.call = static_cast<const std::byte*>(call);
  into.type = type_text<Call>();
  if constexpr (requires(Call c) { c.site.name; }) into.site = static_cast<const Call*>(call)->site.name;
  detail::list_members<Call>(into, std::make_index_sequence<detail::count_members<Call>()>{});
}

}  // namespace rankc::runtime
