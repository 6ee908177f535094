// SPDX-License-Identifier: Apache-2.0
// A .npy file: its header, and every number of it.
#include <rankc/trainer/npy_file.hpp>

#include "accepted_or_refused.hpp"

#include <vector>

using namespace rankc;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto file = fuzz::file_with(fuzz::text_of(data, size), "f.npy");
  fuzz::accept_or_refuse([&] {
    const runtime::npy_file array(file);
    std::uint64_t count = 1;
    for (const std::uint64_t n : array.shape()) count *= n;
    if (count > size) __builtin_trap();  // each number has a byte or more
    std::vector<double> numbers(count);
    array.copy(0, count, numbers.data());
    if (count > 0) array.copy(count - 1, 1, numbers.data());
  });
  return 0;
}
