// SPDX-License-Identifier: Apache-2.0
#include "peer_sums.hpp"

#include "device.cuh"

#include <algorithm>

namespace rankc::cuda {
namespace {

constexpr int block = 1024, blocks_of_processor = 2;

/// Where a member has something of an arena. Units: `byte` from the begin on.
template <class T>
__device__ T* at_member(const peer_group& g, int member, std::size_t byte) {
  return reinterpret_cast<T*>(g.arenas[member] + byte);
}

/// A pack of what all have at one place, summed up.
template <int N, class T>
__device__ pack<T, N> sum_at(const peer_group& g, std::size_t byte, std::size_t i) {
  float sum[N]{};
  for (int member = 0; member < g.ranks; ++member) {
    float term[N];
    unpack(term, load<T, N>(at_member<T>(g, member, byte) + i));
    for (int j = 0; j < N; ++j) sum[j] += term[j];
  }
  return packed<T>(sum);
}

template <int N, class T>
__global__ void __launch_bounds__(block, blocks_of_processor) sum_parts(peer_group g, T* to, std::size_t from, std::size_t count) {
  if (g.words[g.place]->failed != 0) return;
  const std::size_t first = static_cast<std::size_t>(g.place) * count, step = std::size_t{gridDim.x} * block * N;
  for (std::size_t i = (std::size_t{blockIdx.x} * block + threadIdx.x) * N; i < count; i += step)
    store(to + i, sum_at<N, T>(g, from, first + i));
}

/// A rank's part is read and written by no other.
template <int N, class T>
__global__ void __launch_bounds__(block, blocks_of_processor) sum_all(peer_group g, T*, std::size_t data, std::size_t count) {
  if (g.words[g.place]->failed != 0) return;
  const std::size_t packs = count / N, each = (packs + static_cast<std::size_t>(g.ranks) - 1) / static_cast<std::size_t>(g.ranks);
  const std::size_t first = static_cast<std::size_t>(g.place) * each, end = min(first + each, packs);
  for (std::size_t i = first + std::size_t{blockIdx.x} * block + threadIdx.x; i < end; i += std::size_t{gridDim.x} * block) {
    const pack<T, N> sum = sum_at<N, T>(g, data, i * N);
    for (int j = 0; j < g.ranks; ++j) store(at_member<T>(g, (g.place + j) % g.ranks, data) + i * N, sum);
  }
}

/// Blocks by member. Ranks begin with the part of the rank after them, so that they do not all turn to one at a time.
template <int N, class T>
__global__ void __launch_bounds__(block, blocks_of_processor) gather_parts(peer_group g, T* to, std::size_t from, std::size_t count) {
  if (g.words[g.place]->failed != 0) return;
  const int member = (g.place + 1 + static_cast<int>(blockIdx.y)) % g.ranks;
  const T* const theirs = at_member<const T>(g, member, from);
  T* const here = to + static_cast<std::size_t>(member) * count;
  const std::size_t step = std::size_t{gridDim.x} * block * N;
#pragma unroll 4
  for (std::size_t i = (std::size_t{blockIdx.x} * block + threadIdx.x) * N; i < count; i += step)
    store(here + i, load<T, N>(theirs + i));
}

/// Between two meetings: what is read is there, and stays until all have read it. A kernel that waits for other ranks would fill
/// the GPU, and one of another lane, for which they wait, would find no room.
template <class T, class Kernel>
void between_meetings(const lane& on, const char* name, const peer_group& g, Kernel by_packs, Kernel one_by_one, int members, T* to,
                      const T* from, std::size_t count) {
  const std::size_t at = g.offset_of(from);
  const bool has_packs = packable<wide<T>>(count, to, from);
  const int blocks = std::min(ceil_div(has_packs ? count / wide<T> : count, block), processors * blocks_of_processor / members);
  meet(on, g);
  launch(on, name, has_packs ? by_packs : one_by_one, dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(members)), block, 0, g, to, at, count);
  meet(on, g);
}

}  // namespace

template <class T>
void sum_of_peers(const lane& on, const peer_group& g, T* to, const T* from, std::size_t count) {
  between_meetings(on, "sum_of_peers", g, sum_parts<wide<T>, T>, sum_parts<1, T>, 1, to, from, count);
}

template <class T>
void gather_from_peers(const lane& on, const peer_group& g, T* to, const T* from, std::size_t count) {
  between_meetings(on, "gather_from_peers", g, gather_parts<wide<T>, T>, gather_parts<1, T>, g.ranks, to, from, count);
}

template <class T>
void sum_among_peers(const lane& on, const peer_group& g, T* data, std::size_t count) {
  between_meetings(on, "sum_among_peers", g, sum_all<wide<T>, T>, sum_all<1, T>, 1, data, data, count);
}

template void sum_of_peers<float>(const lane&, const peer_group&, float*, const float*, std::size_t);
template void sum_of_peers<bf16>(const lane&, const peer_group&, bf16*, const bf16*, std::size_t);
template void gather_from_peers<float>(const lane&, const peer_group&, float*, const float*, std::size_t);
template void gather_from_peers<bf16>(const lane&, const peer_group&, bf16*, const bf16*, std::size_t);
template void sum_among_peers<float>(const lane&, const peer_group&, float*, std::size_t);
template void sum_among_peers<bf16>(const lane&, const peer_group&, bf16*, std::size_t);

}  // namespace rankc::cuda
