// SPDX-License-Identifier: Apache-2.0
// The two prime fields of the fingerprints of terms. Primes and hash seeds are drawn when a check begins, so
// that no program written before can be fitted to them.
#pragma once
#include <cstdint>

namespace rankc::codegen::algebra {

using word = std::uint64_t;

/// The integers modulo a prime between 2^61 and 2^62, and the seed of the hash into them.
struct field {
  word prime = 0, seed = 0;

  word sum(word x, word y) const {
    const word z = x + y;
    return z >= prime ? z - prime : z;
  }
  word difference(word x, word y) const { return x >= y ? x - y : x + prime - y; }
  word product(word x, word y) const;
  word power(word x, word exponent) const;
  /// The double as a fraction m 2^e. The number must be finite.
  word number(double) const;
  /// One step of a hash: its state after one more word.
  /// Source: Steele, Lea and Flood 2014 (SplitMix64), its finalizer as improved by D. Stafford.
  word hashed(word state, word more) const { return mixed((state ^ more) + seed); }
  /// An element of the field from 64 uniformly random bits. No element has a probability above 5/4 / prime.
  word element(word bits) const {
    __extension__ using wide = unsigned __int128;
    return static_cast<word>(static_cast<wide>(bits) * prime >> 64);
  }
  static constexpr word mixed(word x) {
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    return x ^ (x >> 31);
  }
};

/// The field of each component of a term.
struct fields {
  field a, b;
};
/// The fields that follow from a seed. Their primes differ, and modulo neither of them is a power of two
/// below 2^4096 equal to 1.
fields draw_fields(word seed);

/// Sets the fields of the thread's terms while it lives.
class drawn {
 public:
  explicit drawn(const fields& now) : before_(current_) { current_ = now; }
  ~drawn() { current_ = before_; }
  drawn(const drawn&) = delete;
  drawn& operator=(const drawn&) = delete;

  static const fields& now() { return current_; }

 private:
  fields before_;
  static inline constinit thread_local fields current_{};
};

}  // namespace rankc::codegen::algebra
