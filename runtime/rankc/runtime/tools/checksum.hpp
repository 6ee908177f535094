// SPDX-License-Identifier: Apache-2.0
// A checksum of checkpoints, eight bytes at a time. Any change within one word changes it for certain (each
// step is a bijection of the state), any other change with probability 1 - 2^-64.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace rankc::runtime {

class checksum {
 public:
  /// Add bytes; how they are cut into calls does not matter.
  void add(const void* data, std::size_t bytes) {
    const auto* from = static_cast<const unsigned char*>(data);
    for (; bytes > 0 && filled_ > 0; --bytes) add_byte(*from++);
    for (; bytes >= 8; bytes -= 8, from += 8) {
      std::uint64_t word;
      std::memcpy(&word, from, 8);
      mix(word);
    }
    for (; bytes > 0; --bytes) add_byte(*from++);
  }
  void add(std::string_view text) { add(text.data(), text.size()); }

  /// The checksum of all bytes so far, as 16 hexadecimal digits.
  std::string text() const {
    checksum end = *this;
    end.mix(partial_ ^ (static_cast<std::uint64_t>(filled_) << 56));
    std::string digits(16, '0');
    for (int i = 0; i < 16; ++i) digits[i] = "0123456789abcdef"[(end.state_ >> (60 - 4 * i)) & 15];
    return digits;
  }

 private:
  void add_byte(unsigned char byte) {
    partial_ |= static_cast<std::uint64_t>(byte) << (8 * filled_);
    if (++filled_ < 8) return;
    mix(partial_);
    partial_ = 0;
    filled_ = 0;
  }
  void mix(std::uint64_t word) {
    state_ = (state_ ^ word) * 0x9E3779B97F4A7C15;
    state_ ^= state_ >> 32;
  }

  std::uint64_t state_ = 0xCBF29CE484222325, partial_ = 0;
  int filled_ = 0;  // bytes of partial_, 0 to 7
};

}  // namespace rankc::runtime
