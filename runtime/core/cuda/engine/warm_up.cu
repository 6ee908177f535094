// SPDX-License-Identifier: Apache-2.0
#include "warm_up.hpp"

#include "../device/device.cuh"

namespace rankc::runtime::cuda {
namespace {

/// Two bf16 of magnitude 2^-7 to 2^-5 with random signs. Read as f32, the word has the magnitude of its upper
/// half.
__global__ void noise(std::uint32_t* words, std::size_t count) {
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count;
       i += std::size_t{gridDim.x} * blockDim.x) {
    std::uint32_t x = static_cast<std::uint32_t>(i) * 2654435761u + 12345u;
    x = (x ^ (x >> 16)) * 0x85ebca6bu;
    x = (x ^ (x >> 13)) * 0xc2b2ae35u;
    x ^= x >> 16;
    words[i] = (x & 0x80ff80ffu) | 0x3c003c00u;
  }
}

}  // namespace

void fill_with_noise(const lane& on) {
  const layout& where = *on.of->where;
  launch(on, "noise", noise, 1024, 256, 0, on.at<std::uint32_t>({0}),
         where.arena_bytes / sizeof(std::uint32_t));
  const description& about = *on.of->about;
  const at moments[]{where.first_moment, where.second_moment};
  for (int m = 0; about.trains && m < about.moments; ++m)
    check(on,
          cudaMemsetAsync(on.at<std::byte>(moments[m]), 0,
                          where.trained_count() * size_of(type_of(about, region::first_moment)), on.stream),
          "moments: cudaMemsetAsync");
}

}  // namespace rankc::runtime::cuda
