// SPDX-License-Identifier: Apache-2.0
// Constants of generated text that differ only by a number: the parameters of layers.0, layers.1 and so on.
#pragma once
#include <rankc/runtime/program.hpp>

#include <array>
#include <cstddef>
#include <utility>

namespace rankc::runtime {

/// One value for each of the numbers First, First + 1, and so on.
template <class T, int First, std::size_t Count>
struct numbered {
  T values[Count];
  constexpr const T& operator[](int number) const { return values[number - First]; }
};

/// The values that a rule computes from the numbers.
template <int First, std::size_t Count>
constexpr auto each(auto rule) {
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return numbered<decltype(rule(std::size_t{})), First, Count>{{rule(First + I)...}};
  }(std::make_index_sequence<Count>());
}

/// Events in a row, one for each of the numbers First, First + 1, and so on. With a second range of numbers,
/// each of the first ones has a row of events.
template <int First, int Count, int... Second>
struct numbered_events {
  static constexpr int count = Count;
  int index;  // the number of the first event
  constexpr event operator[](int number) const { return {index + number - First}; }
};
template <int First, int Count, int First2, int Count2, int... Third>
struct numbered_events<First, Count, First2, Count2, Third...> {
  using row = numbered_events<First2, Count2, Third...>;
  static constexpr int count = Count * row::count;
  int index;
  constexpr row operator[](int number) const { return {index + (number - First) * row::count}; }
};

/// A text with a number in it: "weights of layers.31".
template <std::size_t Size>
struct text_with_number {
  char characters[Size + 10]{};
  constexpr text_with_number(const char (&pattern)[Size], std::size_t number) {
    char* to = characters;
    for (const char c : pattern)
      if (c == '#') to = write(number, to);
      else *to++ = c;
  }
  constexpr operator const char*() const { return characters; }

 private:
  static constexpr char* write(std::size_t number, char* to) {
    if (number > 9) to = write(number / 10, to);
    *to++ = static_cast<char>('0' + number % 10);
    return to;
  }
};

/// The texts with each number in place of "#": "weights of layers.0", "weights of layers.1", and so on.
template <int First, std::size_t Count, std::size_t Size>
consteval auto texts(const char (&pattern)[Size]) {
  return each<First, Count>([&](std::size_t number) { return text_with_number<Size>(pattern, number); });
}

}  // namespace rankc::runtime
