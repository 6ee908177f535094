// SPDX-License-Identifier: Apache-2.0
// A safetensors file: the header, every checksum, and every value.
#include <rankc/trainer/safetensors.hpp>

#include "accepted_or_refused.hpp"

using namespace rankc;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto file = fuzz::file_with(fuzz::text_of(data, size), "f.safetensors");
  fuzz::accept_or_refuse([&] {
    const runtime::safetensors_reader reader(file);
    for (const auto& [name, tensor] : reader.tensors())
      fuzz::accept_or_refuse([&] {
        reader.check(name);
        std::vector<double> values(tensor.count);
        reader.read(name, 0, tensor.count, values.data());
      });
  });
  return 0;
}
