// SPDX-License-Identifier: Apache-2.0
// tokenizer.json, and a text to tokenize with it: the bytes after the first zero byte.
#include <tokenizer/tokenizer.hpp>
#include <tokenizer/utf8.hpp>

#include "accepted_or_refused.hpp"

using namespace rankc;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input = fuzz::text_of(data, size);
  const std::size_t end = std::min(input.find('\0'), input.size());
  const auto file = fuzz::file_with(input.substr(0, end), "tokenizer.json");
  fuzz::accept_or_refuse([&] {
    runtime::tokenizer by = runtime::read_tokenizer(file);
    std::size_t replaced = 0;
    std::vector<std::int32_t> ids;
    by.encode(runtime::repaired_utf8(std::string(input.substr(end)), replaced), ids);
    for (const std::int32_t id : ids)
      if (id < 0 || id >= by.size()) __builtin_trap();
  });
  return 0;
}
