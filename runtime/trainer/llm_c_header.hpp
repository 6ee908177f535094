// SPDX-License-Identifier: Apache-2.0
// The header of a token file of llm.c: 256 int32, of which the first three are the magic number, the version
// and the number of tokens.
#pragma once
#include <rankc/trainer/mapped_file.hpp>
#include <rankc/trainer/token_file.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace rankc::runtime {

struct llm_c_form {
  std::int32_t magic, version;
  token_type type;
};
inline constexpr llm_c_form narrow_llm_c{20240520, 1, token_type::u16},
    wide_llm_c{20240801, 7, token_type::u32};
inline constexpr std::size_t llm_c_header_bytes = 256 * sizeof(std::int32_t);

/// The format that begins with a magic number; null if no format does.
constexpr const llm_c_form* llm_c_form_of(std::int32_t magic) {
  if (magic == narrow_llm_c.magic) return &narrow_llm_c;
  return magic == wide_llm_c.magic ? &wide_llm_c : nullptr;
}

/// True if a file begins like a token file of llm.c.
inline bool begins_as_llm_c(std::string_view beginning) {
  std::int32_t magic = 0;
  if (beginning.size() < sizeof magic) return false;
  std::memcpy(&magic, beginning.data(), sizeof magic);
  return llm_c_form_of(magic) != nullptr;
}

struct llm_c_header {
  token_type type;
  std::uint64_t tokens;
};

/// Errors: failure (1) if the file is not llm.c's, or its length differs from its header.
llm_c_header read_llm_c_header(const mapped_file&);

}  // namespace rankc::runtime
