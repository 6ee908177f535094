// SPDX-License-Identifier: Apache-2.0
// A stream of random choices, determined by a seed and an index, the same on every machine.
#pragma once
#include <rankc/trainer/hash.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace fuzz {

class draws {
 public:
  draws(std::uint64_t seed, std::uint64_t index, std::string_view what)
      : state_(rankc::runtime::splitmix64(seed) ^ rankc::runtime::splitmix64(~index) ^
               rankc::runtime::fnv1a64(what)) {}

  std::uint64_t next() { return rankc::runtime::splitmix64(state_ += 0x9E3779B97F4A7C15ull); }
  /// 0 to n - 1.
  int below(int n) { return static_cast<int>(next() % static_cast<std::uint64_t>(n)); }
  /// first to last, both included.
  int between(int first, int last) { return first + below(last - first + 1); }
  bool chance(int percent) { return below(100) < percent; }
  /// One element of a list; an element that occurs twice is twice as likely.
  template <class T>
  T one_of(std::initializer_list<T> all) {
    return all.begin()[below(static_cast<int>(all.size()))];
  }
  template <class List>
  const auto& one_in(const List& all) {
    return all[static_cast<std::size_t>(below(static_cast<int>(all.size())))];
  }

 private:
  std::uint64_t state_;
};

}  // namespace fuzz
