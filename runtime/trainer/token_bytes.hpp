// SPDX-License-Identifier: Apache-2.0
// Tokens as the bytes of a file: little endian, one after the other.
#pragma once
#include <rankc/trainer/token_file.hpp>

#include <cstddef>
#include <cstdint>

namespace rankc::runtime {

/// Bytes of a token.
std::size_t size_of(token_type);

/// Copy tokens up to the first that is not legal.
/// Returns: the number of copied tokens.
std::uint64_t copy_tokens(token_type, const char* from, std::uint64_t count, const legal_tokens&,
                          std::int32_t* to);

/// The token at a place, whether it is legal or not.
std::int64_t token_at(token_type, const char* from);

}  // namespace rankc::runtime
