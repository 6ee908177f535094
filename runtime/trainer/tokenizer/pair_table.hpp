// SPDX-License-Identifier: Apache-2.0
// A hash table with pairs of numbers as keys. It is BPE's most frequent lookup.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace rankc::runtime {

template <class Value>
class pair_table {
 public:
  /// Sets or replaces the value of a pair. The pair of the two largest numbers is not allowed.
  void set(std::uint32_t a, std::uint32_t b, Value value) {
    if (2 * (count_ + 1) > slots_.size()) grow();
    slot& at = slots_[place_of(key_of(a, b))];
    if (at.key == unused) ++count_;
    at = {key_of(a, b), value};
  }

  /// Null if the pair has no value.
  const Value* find(std::uint32_t a, std::uint32_t b) const {
    if (slots_.empty()) return nullptr;
    const slot& at = slots_[place_of(key_of(a, b))];
    return at.key == unused ? nullptr : &at.value;
  }

 private:
  static constexpr std::uint64_t unused = ~std::uint64_t{0};
  struct slot {
    std::uint64_t key = unused;
    Value value{};
  };

  static std::uint64_t key_of(std::uint32_t a, std::uint32_t b) { return std::uint64_t{a} << 32 | b; }

  /// The slot that holds the key, or the empty slot for it.
  std::size_t place_of(std::uint64_t key) const {
    const std::size_t mask = slots_.size() - 1;
    std::uint64_t mixed = key * 0x9e3779b97f4a7c15u;
    std::size_t at = (mixed ^ mixed >> 32) & mask;
    while (slots_[at].key != unused && slots_[at].key != key) at = (at + 1) & mask;
    return at;
  }

  void grow() {
    std::vector<slot> old(slots_.empty() ? 64 : 2 * slots_.size());
    old.swap(slots_);
    for (const slot& s : old)
      if (s.key != unused) slots_[place_of(s.key)] = s;
  }

  std::vector<slot> slots_;  // a power of two, at most half of them used
  std::size_t count_ = 0;
};

}  // namespace rankc::runtime
