// SPDX-License-Identifier: Apache-2.0
// A line of messages, with and without weights, written by every chat template.
#include <chat/chat_text.hpp>

#include "accepted_or_refused.hpp"

#include <algorithm>

using namespace rankc;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view line = fuzz::text_of(data, size);
  for (const char* name : {"chatml", "llama3", "mistral", "gemma", "gpt-oss"})
    for (const char* weights_field : {"", "w"})
      fuzz::accept_or_refuse([&] {
        const auto messages = runtime::read_messages(line, "line", weights_field);
        const auto chat = runtime::write_chat(runtime::chat_form_of(name), messages, "2025-08-05", "line");
        std::size_t done = 0;
        for (const auto& part : chat.labels) {
          if (part.begin < done || part.end <= part.begin || part.end > chat.text.size()) __builtin_trap();
          done = part.end;
        }
        if (chat.message_ends.size() != messages.size() || !std::ranges::is_sorted(chat.message_ends) ||
            chat.message_ends.back() > chat.text.size())
          __builtin_trap();
      });
  return 0;
}
