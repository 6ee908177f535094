// SPDX-License-Identifier: Apache-2.0
// The tensors that a call of generated text has to do with, found in its struct of named operands, and what it is called.
#pragma once
#include <rankc/runtime/tensor.hpp>

#include <array>
#include <span>
#include <string_view>
#include <tuple>

namespace rankc::runtime {

/// Numbers in a rank's arena: rows of as many columns, `stride` elements apart.
struct operand {
  at where;
  std::size_t rows, columns, stride;
  dtype type;
};

/// What a call is, for a text: its type as the compiler spells it, and the message's name where it has one.
struct call_name {
  std::string_view type;
  const char* site;
};

namespace detail {

struct anything {
  template <class T>
  operator T() const;
};

template <class Call, class... Members>
constexpr std::size_t count_members() {
  if constexpr (requires { Call{Members{}..., anything{}}; }) return count_members<Call, Members..., anything>();
  else return sizeof...(Members);
}

/// C++ names the members of a struct by their number alone.
template <class Call>
auto members_of(const Call& call) {
  constexpr std::size_t n = count_members<Call>();
  static_assert(n <= 18, "a call has more operands than are foreseen here");
  // clang-format off
  if constexpr (n == 1) { const auto& [a] = call; return std::tie(a); }
  else if constexpr (n == 2) { const auto& [a, b] = call; return std::tie(a, b); }
  else if constexpr (n == 3) { const auto& [a, b, c] = call; return std::tie(a, b, c); }
  else if constexpr (n == 4) { const auto& [a, b, c, d] = call; return std::tie(a, b, c, d); }
  else if constexpr (n == 5) { const auto& [a, b, c, d, e] = call; return std::tie(a, b, c, d, e); }
  else if constexpr (n == 6) { const auto& [a, b, c, d, e, f] = call; return std::tie(a, b, c, d, e, f); }
  else if constexpr (n == 7) { const auto& [a, b, c, d, e, f, g] = call; return std::tie(a, b, c, d, e, f, g); }
  else if constexpr (n == 8) { const auto& [a, b, c, d, e, f, g, h] = call; return std::tie(a, b, c, d, e, f, g, h); }
  else if constexpr (n == 9) { const auto& [a, b, c, d, e, f, g, h, i] = call; return std::tie(a, b, c, d, e, f, g, h, i); }
  else if constexpr (n == 10) { const auto& [a, b, c, d, e, f, g, h, i, j] = call; return std::tie(a, b, c, d, e, f, g, h, i, j); }
  else if constexpr (n == 11) { const auto& [a, b, c, d, e, f, g, h, i, j, k] = call; return std::tie(a, b, c, d, e, f, g, h, i, j, k); }
  else if constexpr (n == 12) { const auto& [a, b, c, d, e, f, g, h, i, j, k, l] = call; return std::tie(a, b, c, d, e, f, g, h, i, j, k, l); }
  else if constexpr (n == 13) { const auto& [a, b, c, d, e, f, g, h, i, j, k, l, m] = call; return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m); }
  else if constexpr (n == 14) { const auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, o] = call; return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, o); }
  else if constexpr (n == 15) { const auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, o, p] = call; return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, o, p); }
  else if constexpr (n == 16) { const auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q] = call; return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q); }
  else if constexpr (n == 17) { const auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r] = call; return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r); }
  else if constexpr (n == 18) { const auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r, s] = call; return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r, s); }
  else return std::tie();
  // clang-format on
}

template <class T>
inline constexpr bool is_checked = std::is_same_v<T, float> || std::is_same_v<T, double>;

inline void add_operand(operand*&, const auto&) {}
template <class T, std::size_t Count>
  requires is_checked<T>
void add_operand(operand*& to, const vector<T, Count>& v) {
  *to++ = {v.where, 1, Count, Count, std::is_same_v<T, double> ? dtype::f64 : dtype::f32};
}
template <class T, std::size_t Rows, std::size_t Columns, std::size_t Stride>
  requires is_checked<T>
void add_operand(operand*& to, const matrix<T, Rows, Columns, Stride>& m) {
  *to++ = {m.where, Rows, Columns, Stride, std::is_same_v<T, double> ? dtype::f64 : dtype::f32};
}

template <class T>
constexpr std::string_view spelt_type() {
  const std::string_view all = __PRETTY_FUNCTION__;
  return all.substr(all.find("T = ") + 4);
}

}  // namespace detail

/// The tensors of f32 and f64 among the operands of a call, in their order.
template <class Call>
class operands_of {
 public:
  explicit operands_of(const Call& call) {
    operand* end = all_.data();
    std::apply([&](const auto&... member) { (detail::add_operand(end, member), ...); }, detail::members_of(call));
    count_ = static_cast<std::size_t>(end - all_.data());
  }
  std::span<const operand> all() const { return std::span(all_).first(count_); }

 private:
  std::array<operand, detail::count_members<Call>()> all_;
  std::size_t count_;
};

template <class Call>
call_name name_of(const Call& call) {
  if constexpr (requires { call.site.name; }) return {detail::spelt_type<Call>(), call.site.name};
  else return {detail::spelt_type<Call>(), nullptr};
}

}  // namespace rankc::runtime
