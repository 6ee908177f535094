// SPDX-License-Identifier: Apache-2.0
// A line of messages, written by every chat template.
#include <chat/chat_text.hpp>

#include "accepted_or_refused.hpp"

using namespace rankc;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view line = fuzz::text_of(data, size);
  for (const char* name : {"chatml", "llama3", "mistral", "gemma", "gpt-oss"})
    fuzz::accept_or_refuse([&] {
      const auto messages = runtime::read_messages(line, "line");
      const auto chat = runtime::write_chat(runtime::chat_form_of(name), messages, "2025-08-05", "line");
      std::size_t done = 0;
      for (const auto& part : chat.labels) {
        if (part.begin < done || part.end <= part.begin || part.end > chat.text.size()) __builtin_trap();
        done = part.end;
      }
    });
  return 0;
}
