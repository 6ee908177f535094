// SPDX-License-Identifier: Apache-2.0
// index.json of a checkpoint.
#include <rankc/trainer/checkpoint_index.hpp>

#include "accepted_or_refused.hpp"
#include "checked_json.hpp"

using namespace rankc;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto file = fuzz::file_with(fuzz::with_checksum(fuzz::text_of(data, size)), "index.json");
  fuzz::accept_or_refuse([&] { runtime::read_index(file); });
  return 0;
}
