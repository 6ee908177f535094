// SPDX-License-Identifier: Apache-2.0
// The members of a call of generated text, found in its struct of named operands, and the call's name.
#pragma once
#include <rankc/runtime/call_names.hpp>
#include <rankc/runtime/hashed_call.hpp>
#include <rankc/contract/attention_setting.hpp>
#include <rankc/contract/fp8.hpp>
#include <rankc/runtime/tensor.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>

namespace rankc::runtime {

/// Numbers in a rank's arena: rows of `columns` elements, `stride` elements apart.
struct operand {
  at where;
  std::size_t rows, columns, stride;
  dtype type;
};

enum class member_kind : unsigned char {
  other,
  tensor,
  scratch,
  size,     // a constant of its type
  number,   // a double
  first,    // the start of the rank's part of a dim
  setting,  // an attention_setting
  store,
  over,
  site,
  reduction,
  ranges,
  shards,
  shard_place  // the destination of a range's sums
};

namespace detail {

template <class T>
inline constexpr hashed_type type_of = sizeof(T) == 2 ? hashed_type::bf16 : hashed_type::bytes;
template <>
inline constexpr hashed_type type_of<float> = hashed_type::f32;
template <>
inline constexpr hashed_type type_of<double> = hashed_type::f64;
template <>
inline constexpr hashed_type type_of<std::int32_t> = hashed_type::i32;
template <>
inline constexpr hashed_type type_of<e4m3> = hashed_type::e4m3;
template <>
inline constexpr hashed_type type_of<e5m2> = hashed_type::e5m2;
template <>
inline constexpr hashed_type type_of<e4m3_rows> = hashed_type::e4m3_rows;

/// The facts that a member's type contains. For a size, `rows` is its number.
struct member_type {
  member_kind kind = member_kind::other;
  std::size_t rows = 0, columns = 0, stride = 0, bytes = 0;
  hashed_type type = hashed_type::bytes;
};
using enum member_kind;

template <class T>
inline constexpr member_type member_of{};
template <class T, std::size_t N>
inline constexpr member_type member_of<vector<T, N>>{tensor, 1, N, N, N * sizeof(T), type_of<T>};
template <class T, std::size_t R, std::size_t C, std::size_t S>
inline constexpr member_type member_of<matrix<T, R, C, S>>{tensor, R, C, S, R* C * sizeof(T), type_of<T>};
template <class Rows, class Statistics, std::size_t Offset>
inline constexpr member_type member_of<stream<Rows, Statistics, Offset>>{
    tensor,
    member_of<Rows>.rows,
    member_of<Rows>.columns,
    member_of<Rows>.stride,
    stream<Rows, Statistics, Offset>::bytes,
    member_of<Rows>.type};
template <std::size_t N>
inline constexpr member_type member_of<size_constant<N>>{size, N};
template <>
inline constexpr member_type member_of<workspace>{scratch};
template <>
inline constexpr member_type member_of<double>{number};
template <>
inline constexpr member_type member_of<std::size_t>{first};
template <>
inline constexpr member_type member_of<attention_setting>{setting};
template <>
inline constexpr member_type member_of<runtime::store>{member_kind::store};
template <>
inline constexpr member_type member_of<runtime::over>{member_kind::over};
template <>
inline constexpr member_type member_of<message>{site};
template <>
inline constexpr member_type member_of<runtime::reduction>{member_kind::reduction};
template <>
inline constexpr member_type member_of<std::span<const range>>{ranges};
template <>
inline constexpr member_type member_of<std::span<const shard_range>>{shards};
template <>
inline constexpr member_type member_of<std::size_t shard_range::*>{shard_place};

}  // namespace detail

inline constexpr std::size_t most_operands = 32;

/// A member of a call, with its address.
struct call_member {
  const std::byte* where = nullptr;
  detail::member_type of{};
  template <class T>
  const T& as() const {
    return *reinterpret_cast<const T*>(where);
  }
};

/// A call: its members in their order, its tensors of f32 and f64, and the text of its type (call_names.hpp).
/// `row` is the name of its op row if the type has another name, else null. `site` is its message's name, or
/// null.
struct operand_list {
  const std::byte* call = nullptr;
  const char *type = nullptr, *row = nullptr, *site = nullptr;
  std::size_t offset = 0, count = 0, n_members = 0;
  std::array<operand, most_operands> tensors;
  std::array<call_member, most_operands> members;
  std::span<const operand> all() const { return std::span(tensors).first(count); }
  std::span<const call_member> all_members() const { return std::span(members).first(n_members); }
  /// Empties the list for another call.
  void clear() {
    row = site = nullptr;
    offset = count = n_members = 0;
  }
};

namespace detail {

/// Adds the next member of the call.
[[gnu::noinline]] inline void add_member(operand_list& list, std::size_t bytes, std::size_t alignment,
                                         const member_type& m) {
  list.offset = (list.offset + alignment - 1) / alignment * alignment;
  const call_member& added = list.members[list.n_members++] = {list.call + list.offset, m};
  const bool is_f64 = m.type == hashed_type::f64;
  if (m.kind == tensor && (is_f64 || m.type == hashed_type::f32))
    list.tensors[list.count++] = {added.as<at>(), m.rows, m.columns, m.stride,
                                  is_f64 ? dtype::f64 : dtype::f32};
  list.offset += bytes;
}

/// Converts to a member of any type and adds it to the list.
struct any_member {
  operand_list* list;
  template <class T>
  operator T() const {
    add_member(*list, sizeof(T), alignof(T), member_of<T>);
    return T{};
  }
};

template <class Call, std::size_t... I>
constexpr bool has_members(std::index_sequence<I...>) {
  return requires(any_member m) { Call{(static_cast<void>(I), m)...}; };
}

/// The number of members of a call. C++ can only find it by trying. The search starts at `N`, because most
/// calls have 3 or more.
template <class Call, std::size_t N = 3>
constexpr std::size_t count_members() {
  if constexpr (!has_members<Call>(std::make_index_sequence<N>{})) return count_members<Call, N - 1>();
  else if constexpr (has_members<Call>(std::make_index_sequence<N + 1>{}))
    return count_members<Call, N + 1>();
  else return N;
}

template <class Call, std::size_t... I>
[[gnu::always_inline]] inline void list_members(operand_list& list, std::index_sequence<I...>) {
  const any_member m{&list};
  static_cast<void>(Call{(static_cast<void>(I), m)...});
}

}  // namespace detail

template <class Call>
[[gnu::cold]] void describe(const void* call, operand_list& into) {
  static_assert(std::is_standard_layout_v<Call>);
  into.call = static_cast<const std::byte*>(call);
  into.type = type_text<Call>();
  if constexpr (requires { Call::row_name; }) into.row = Call::row_name;
  if constexpr (requires(Call c) { c.site.name; }) into.site = static_cast<const Call*>(call)->site.name;
  constexpr std::size_t members = detail::count_members<Call>();
  static_assert(members <= most_operands, "a call has at most 32 members");
  detail::list_members<Call>(into, std::make_index_sequence<members>{});
}

}  // namespace rankc::runtime
