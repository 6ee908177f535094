// SPDX-License-Identifier: Apache-2.0
#include "exchange.hpp"

#include "../device/device.cuh"

namespace rankc::runtime::cuda {
namespace {

/// A thread moves N neighbouring elements of the `width` elements of a unit.
template <bool Into, int N, class T>
__global__ void __launch_bounds__(block_size) move_heads(T* to, const T* from, runtime::head_exchange by) {
  const unsigned packs = static_cast<unsigned>(by.width) / N;
  const std::size_t item = std::size_t{blockIdx.x} * block_size + threadIdx.x, i = item / packs;
  if (i >= static_cast<std::size_t>(by.count())) return;
  const std::size_t width = static_cast<std::size_t>(by.width), column = item % packs * N;
  const int place = static_cast<int>(i), other = Into ? by.sent(place) : by.arrived(place);
  const std::size_t in_block = i * width + column, in_rows = static_cast<std::size_t>(other) * width + column;
  store(to + (Into ? in_block : in_rows), load<T, N>(from + (Into ? in_rows : in_block)));
}

template <bool Into, class T>
void run(const lane& on, const char* name, T* to, const T* from, const runtime::head_exchange& by) {
  constexpr int n = wide<T>;
  const std::size_t count = static_cast<std::size_t>(by.count()) * static_cast<std::size_t>(by.width);
  if (packable<n>(by.width, to, from))
    launch(on, name, move_heads<Into, n, T>, ceil_div(count, block_size * n), block_size, 0, to, from, by);
  else launch(on, name, move_heads<Into, 1, T>, ceil_div(count, block_size), block_size, 0, to, from, by);
}

}  // namespace

template <class T>
void put_into_blocks(const lane& on, T* to, const T* from, const runtime::head_exchange& by) {
  run<true>(on, "put_into_blocks", to, from, by);
}
template <class T>
void take_from_blocks(const lane& on, T* to, const T* from, const runtime::head_exchange& by) {
  run<false>(on, "take_from_blocks", to, from, by);
}

template void put_into_blocks<float>(const lane&, float*, const float*, const runtime::head_exchange&);
template void put_into_blocks<bf16>(const lane&, bf16*, const bf16*, const runtime::head_exchange&);
template void take_from_blocks<float>(const lane&, float*, const float*, const runtime::head_exchange&);
template void take_from_blocks<bf16>(const lane&, bf16*, const bf16*, const runtime::head_exchange&);

}  // namespace rankc::runtime::cuda
