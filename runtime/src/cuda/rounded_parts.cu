// SPDX-License-Identifier: Apache-2.0
#include "rounded_parts.hpp"

#include "device.cuh"

namespace rankc::cuda {
namespace {

constexpr int block = 256;

/// A thread has N neighbours of a part.
template <int N>
__global__ void __launch_bounds__(block) round_to(bf16* to, const float* from, std::size_t parts, std::size_t stride, std::size_t count) {
  const std::size_t packs = count / N, item = std::size_t{blockIdx.x} * block + threadIdx.x, part = item / packs;
  if (part >= parts) return;
  const std::size_t at = item % packs * N;
  float values[N];
  unpack(values, load<float, N>(from + part * stride + at));
  store(to + part * count + at, packed<bf16>(values));
}

template <int N>
__global__ void __launch_bounds__(block) widen_to(float* to, const bf16* from, std::size_t count) {
  const std::size_t at = (std::size_t{blockIdx.x} * block + threadIdx.x) * N;
  if (at >= count) return;
  float values[N];
  unpack(values, load<bf16, N>(from + at));
  store(to + at, packed<float>(values));
}

constexpr int n = wide<float>;

}  // namespace

void round_parts(const lane& on, bf16* to, const float* from, std::size_t parts, std::size_t stride, std::size_t count) {
  if (stride % n == 0 && count % n == 0 && packable<n>(n, from) && packable<n>(n, to))
    launch(on, "round", round_to<n>, ceil_div(parts * count, block * n), block, 0, to, from, parts, stride, count);
  else launch(on, "round", round_to<1>, ceil_div(parts * count, block), block, 0, to, from, parts, stride, count);
}

void widen_part(const lane& on, float* to, const bf16* from, std::size_t count) {
  if (count % n == 0 && packable<n>(n, to) && packable<n>(n, from))
    launch(on, "widen", widen_to<n>, ceil_div(count, block * n), block, 0, to, from, count);
  else launch(on, "widen", widen_to<1>, ceil_div(count, block), block, 0, to, from, count);
}

}  // namespace rankc::cuda
