// SPDX-License-Identifier: Apache-2.0
// Bytes from a client of the coordinator: as frames, as the body of a hello, and as an altered frame.
#include <rankc/launch/frame.hpp>
#include <rankc/launch/hello.hpp>

#include "accepted_or_refused.hpp"

using namespace rankc;

namespace {

const runtime::mac_key key{1, 2, 3};

/// Run a reader. Errors: any exception except the one for malformed frames.
template <class Read>
void read_or_refuse(const Read& read) {
  try {
    fuzz::accept_or_refuse(read);
  } catch (const runtime::not_a_frame&) {
  }
}

/// A frame with one flipped bit must not be accepted.
void alter_frame(std::string_view text) {
  std::string sent = runtime::frame_writer(key).encode(runtime::frame_kind::hello, text.substr(1));
  sent[static_cast<unsigned char>(text[0]) % sent.size()] ^= 1;
  runtime::frame_reader reader(key);
  read_or_refuse([&] {
    reader.add(sent);
    if (reader.next()) __builtin_trap();
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::text_of(data, size);
  read_or_refuse([&] {
    runtime::frame_reader reader(key);
    reader.add(text);
    while (reader.next()) continue;
  });
  read_or_refuse([&] {
    const runtime::hello h = runtime::unpack_hello(std::string(text));
    if (runtime::pack(runtime::unpack_hello(runtime::pack(h))) != runtime::pack(h)) __builtin_trap();
    runtime::differences({h, h}, 4, {});
  });
  if (!text.empty()) alter_frame(text);
  return 0;
}
