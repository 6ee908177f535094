// SPDX-License-Identifier: Apache-2.0
// Tokens as bytes of a file: little endian and contiguous.
#pragma once
#include <rankc/trainer/token_file.hpp>

#include <cstddef>
#include <cstdint>

namespace rankc::runtime {

/// Bytes per token.
std::size_t size_of(token_type);

/// Copies tokens up to the first that is not legal.
/// Returns: the number of copied tokens.
std::uint64_t copy_tokens(token_type, const char* from, std::uint64_t count, const legal_tokens&,
                          std::int32_t* to);

/// Reads one token without checking that it is legal.
std::int64_t token_at(token_type, const char* from);

}  // namespace rankc::runtime
