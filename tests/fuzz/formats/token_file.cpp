// SPDX-License-Identifier: Apache-2.0
// A .bin file of tokens. The first byte of the input is the length of its .idx file; 0: there is no .idx.
#include <rankc/trainer/token_file.hpp>

#include "accepted_or_refused.hpp"

#include <algorithm>
#include <filesystem>

using namespace rankc;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text = fuzz::text_of(data + 1, size - 1);
  const std::size_t length = std::min<std::size_t>(data[0], text.size());
  const auto file = fuzz::file_with(text.substr(length), "f.bin");
  const auto index = fuzz::file_with(text.substr(0, length), "f.idx");
  if (length == 0) std::filesystem::remove(index);
  fuzz::accept_or_refuse([&] {
    const runtime::token_stream tokens(file, 256);
    std::vector<std::int32_t> all(tokens.size());
    tokens.copy(0, tokens.size(), all.data());
    for (const std::int32_t token : all)
      if (token < 0 || token >= 256) __builtin_trap();
    std::vector<std::uint8_t> begins(tokens.size());
    tokens.mark_documents(0, tokens.size(), begins.data());
    if (std::ranges::count(begins, 1) != static_cast<std::ptrdiff_t>(tokens.documents())) __builtin_trap();
  });
  return 0;
}
