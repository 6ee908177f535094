// SPDX-License-Identifier: Apache-2.0
// The generator's table of proven calls: a hash of the calls of each step. When a program starts, it hashes
// the calls of its text (hashed_call.hpp) and compares the two.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace rankc::runtime {

/// A hash of words, which depends on their order.
class hasher {
 public:
  explicit constexpr hasher(std::uint64_t before = 0) : state_(before) {}
  constexpr void add(std::uint64_t word) { state_ = mixed(state_ ^ word); }
  constexpr void add(std::string_view text) {
    std::uint64_t all = text.size();
    for (const char c : text) all = all * 0x100000001b3 ^ static_cast<unsigned char>(c);
    add(all);
  }
  void add(double number) { add(std::bit_cast<std::uint64_t>(number)); }
  constexpr std::uint64_t value() const { return state_; }

 private:
  /// Source: SplitMix64 (Steele et al. 2014).
  static constexpr std::uint64_t mixed(std::uint64_t x) {
    x += 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
  }
  std::uint64_t state_;
};

/// The proven calls of a step. All ranks of a pipeline coordinate make these calls.
struct proven_step {
  int pp;
  bool trains;
  int rank;  // the calls use its coordinates; other ranks have other shard offsets
  std::size_t calls;
  std::uint64_t hash;  // hash of all calls and the waits at the end
  int every;           // number of calls from one entry of `after` to the next
  const char* after;   // entries of four digits: the last 16 bits of the hash after these calls
};

/// The last 16 bits of a hash.
constexpr std::uint64_t short_hash(std::uint64_t hash) { return hash & 0xffff; }

/// The fingerprint of a program, from the hashes of its steps.
constexpr std::uint64_t fingerprint_of(const auto& steps) {
  hasher f;
  for (const auto& s : steps) f.add(s.hash);
  return f.value();
}

}  // namespace rankc::runtime
