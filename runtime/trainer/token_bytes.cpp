// SPDX-License-Identifier: Apache-2.0
#include "token_bytes.hpp"

#include <bit>
#include <cstring>

namespace rankc::runtime {
namespace {

static_assert(std::endian::native == std::endian::little, "token files are little endian");

/// Calls `use` with a zero of the file's token type.
template <class Use>
auto with_type(token_type type, const Use& use) {
  switch (type) {
    case token_type::u8:
      return use(std::uint8_t{});
    case token_type::i8:
      return use(std::int8_t{});
    case token_type::i16:
      return use(std::int16_t{});
    case token_type::i32:
      return use(std::int32_t{});
    case token_type::i64:
      return use(std::int64_t{});
    case token_type::u16:
      return use(std::uint16_t{});
    case token_type::u32:
      break;
  }
  return use(std::uint32_t{});
}

}  // namespace

std::size_t size_of(token_type type) {
  return with_type(type, [](auto token) { return sizeof token; });
}

std::uint64_t copy_tokens(token_type type, const char* from, std::uint64_t count, const legal_tokens& legal,
                          std::int32_t* to) {
  return with_type(type, [&](auto token) {
    for (std::uint64_t i = 0; i < count; ++i) {
      std::memcpy(&token, from + i * sizeof token, sizeof token);
      if (!legal.has(static_cast<std::int64_t>(token))) return i;
      to[i] = static_cast<std::int32_t>(token);
    }
    return count;
  });
}

std::int64_t token_at(token_type type, const char* from) {
  return with_type(type, [&](auto token) {
    std::memcpy(&token, from, sizeof token);
    return static_cast<std::int64_t>(token);
  });
}

}  // namespace rankc::runtime
