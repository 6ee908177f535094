// SPDX-License-Identifier: Apache-2.0
// The .idx file of Megatron.
#include <rankc/trainer/megatron_index.hpp>

#include "accepted_or_refused.hpp"

using namespace rankc;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto file = fuzz::file_with(fuzz::text_of(data, size), "f.idx");
  fuzz::accept_or_refuse([&] { runtime::read_megatron_index(file, 64); });
  return 0;
}
