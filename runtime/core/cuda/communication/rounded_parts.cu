// SPDX-License-Identifier: Apache-2.0
#include "rounded_parts.hpp"

#include "../device/device.cuh"

#include <algorithm>

namespace rankc::runtime::cuda {
namespace {

constexpr int n = wide<float>;

/// The part that contains element `at` of the data for a member, or the part before the gap that contains it.
__device__ const rounded_parts::part& part_at(const rounded_parts& of, std::size_t at) {
  int i = 0;
  while (i + 1 < of.many && of.parts[i + 1].at <= at) ++i;
  return of.parts[i];
}

/// A thread rounds N neighbouring elements of the data for a member.
template <int N>
__global__ void __launch_bounds__(block_size) round_to(bf16* to, const rounded_parts of) {
  const std::size_t packs = of.length / N, item = std::size_t{blockIdx.x} * block_size + threadIdx.x,
                    member = item / packs;
  if (member >= of.members) return;
  const std::size_t at = item % packs * N;
  const rounded_parts::part& p = part_at(of, at);
  float values[N]{};
  if (at - p.at < p.count) unpack(values, load<float, N>(p.from + member * p.stride + (at - p.at)));
  store(to + member * of.length + at, packed<bf16>(values));
}

template <int N>
__global__ void __launch_bounds__(block_size) widen_to(const bf16* from, const rounded_parts of) {
  const std::size_t at = (std::size_t{blockIdx.x} * block_size + threadIdx.x) * N;
  if (at >= of.length) return;
  const rounded_parts::part& p = part_at(of, at);
  if (at - p.at >= p.count) return;
  float values[N];
  unpack(values, load<bf16, N>(from + at));
  store(p.to + (at - p.at), packed<float>(values));
}

/// True if all parts can be read and written in packs.
bool is_packable(const rounded_parts& of) {
  return std::all_of(of.parts, of.parts + of.many, [](const rounded_parts::part& p) {
    return p.stride % n == 0 && packable<n>(p.count, p.to, p.from);
  });
}

}  // namespace

void round_parts(const lane& on, bf16* to, const rounded_parts& of) {
  const std::size_t all = of.members * of.length;
  if (is_packable(of)) launch(on, "round", round_to<n>, ceil_div(all, block_size * n), block_size, 0, to, of);
  else launch(on, "round", round_to<1>, ceil_div(all, block_size), block_size, 0, to, of);
}

void widen_parts(const lane& on, const bf16* from, const rounded_parts& of) {
  if (is_packable(of))
    launch(on, "widen", widen_to<n>, ceil_div(of.length, block_size * n), block_size, 0, from, of);
  else launch(on, "widen", widen_to<1>, ceil_div(of.length, block_size), block_size, 0, from, of);
}

}  // namespace rankc::runtime::cuda
