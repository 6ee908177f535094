// SPDX-License-Identifier: Apache-2.0
// The checksum of checkpoints: XXH3 with 64 bits.
#pragma once
#define XXH_INLINE_ALL  // header-only, so nothing is linked
#include <xxhash.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace rankc::runtime {

class checksum {
 public:
  checksum() { XXH3_64bits_reset(&state_); }

  /// Adds bytes. Several calls give the same checksum as one call with all bytes.
  void add(const void* data, std::size_t bytes) { XXH3_64bits_update(&state_, data, bytes); }
  void add(std::string_view text) { add(text.data(), text.size()); }

  /// The checksum of all bytes so far, as 16 hexadecimal digits.
  std::string text() const {
    const XXH64_hash_t sum = XXH3_64bits_digest(&state_);
    std::string digits(16, '0');
    for (int i = 0; i < 16; ++i) digits[i] = "0123456789abcdef"[(sum >> (60 - 4 * i)) & 15];
    return digits;
  }

  /// The checksum of a text.
  static std::string of(std::string_view text) {
    checksum sum;
    sum.add(text);
    return sum.text();
  }

 private:
  XXH3_state_t state_;
};

}  // namespace rankc::runtime
