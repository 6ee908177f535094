// SPDX-License-Identifier: Apache-2.0
#include "peer_sums.hpp"

#include "../device/device.cuh"

#include <algorithm>

namespace rankc::runtime::cuda {
namespace {

constexpr int sum_block = 1024, blocks_of_processor = 2;

/// The address in a member's arena.
/// Units: `byte` is the offset from the arena's start.
template <class T>
__host__ __device__ T* at_member(const peer_group& g, int member, std::size_t byte) {
  return reinterpret_cast<T*>(g.arenas[member] + byte);
}

/// The terms of a sum: the elements of all members at one offset, from element `first` on.
template <class T>
sum_terms<T> terms_at(const peer_group& g, const T* place, std::size_t first = 0) {
  sum_terms<T> all{.count = g.ranks};
  for (int member = 0; member < g.ranks; ++member)
    all.of[member] = at_member<const T>(g, member, g.offset_of(place)) + first;
  return all;
}

/// A pack of the sum.
template <int N, class T>
__device__ pack<T, N> sum_at(const sum_terms<T>& terms, std::size_t i) {
  float sum[N]{};
  for (int t = 0; t < terms.count; ++t) {
    float term[N];
    unpack(term, load<T, N>(terms.of[t] + i));
    for (int j = 0; j < N; ++j) sum[j] += term[j];
  }
  return packed<T>(sum);
}

/// Adds up the terms. `failed` is the word that is set after a rank has failed; null if the terms are all
/// local.
template <int N, class T>
__global__ void __launch_bounds__(sum_block, blocks_of_processor)
    sum_parts(const unsigned* failed, sum_terms<T> terms, T* to, std::size_t count) {
  if (failed != nullptr && *failed != 0) return;
  const std::size_t step = std::size_t{gridDim.x} * sum_block * N;
  for (std::size_t i = (std::size_t{blockIdx.x} * sum_block + threadIdx.x) * N; i < count; i += step)
    store(to + i, sum_at<N, T>(terms, i));
}

/// Each rank computes one part of the sum. No other rank reads or writes that part.
template <int N, class T>
__global__ void __launch_bounds__(sum_block, blocks_of_processor)
    sum_all(peer_group g, sum_terms<T> terms, std::size_t data, std::size_t count) {
  if (g.words[g.place]->failed != 0) return;
  const std::size_t packs = count / N, each = (packs + static_cast<std::size_t>(g.ranks) - 1) /
                                              static_cast<std::size_t>(g.ranks);
  const std::size_t first = static_cast<std::size_t>(g.place) * each, end = min(first + each, packs);
  for (std::size_t i = first + std::size_t{blockIdx.x} * sum_block + threadIdx.x; i < end;
       i += std::size_t{gridDim.x} * sum_block) {
    const pack<T, N> sum = sum_at<N, T>(terms, i * N);
    for (int j = 0; j < g.ranks; ++j) store(at_member<T>(g, (g.place + j) % g.ranks, data) + i * N, sum);
  }
}

/// The blocks along y are members. A rank begins with the part of the next rank, so that ranks do not all
/// read one rank's memory at a time.
template <int N, class T>
__global__ void __launch_bounds__(sum_block, blocks_of_processor)
    gather_parts(peer_group g, T* to, std::size_t from, std::size_t count) {
  if (g.words[g.place]->failed != 0) return;
  const int member = (g.place + 1 + static_cast<int>(blockIdx.y)) % g.ranks;
  const T* const theirs = at_member<const T>(g, member, from);
  T* const here = to + static_cast<std::size_t>(member) * count;
  const std::size_t step = std::size_t{gridDim.x} * sum_block * N;
#pragma unroll 4
  for (std::size_t i = (std::size_t{blockIdx.x} * sum_block + threadIdx.x) * N; i < count; i += step)
    store(here + i, load<T, N>(theirs + i));
}

/// Launches on all multiprocessors, with packs if the addresses allow them.
template <class T, class Kernel, class... Arguments>
void launch_wide(const lane& on, const char* name, Kernel by_packs, Kernel one_by_one, bool has_packs,
                 int members, std::size_t count, Arguments... arguments) {
  const int blocks = std::min(ceil_div(has_packs ? count / wide<T> : count, sum_block),
                              processors * blocks_of_processor / members);
  launch(on, name, has_packs ? by_packs : one_by_one,
         dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(members)), sum_block, 0, arguments...);
}

template <class T>
void launch_sum(const lane& on, const char* name, const unsigned* failed, T* to, const sum_terms<T>& terms,
                std::size_t count) {
  bool has_packs = packable<wide<T>>(count, to);
  for (int t = 0; t < terms.count; ++t) has_packs &= packable<wide<T>>(count, terms.of[t]);
  launch_wide<T>(on, name, sum_parts<wide<T>, T>, sum_parts<1, T>, has_packs, 1, count, failed, terms, to,
                 count);
}

}  // namespace

// Data read between two barriers is complete, and is not overwritten before the second barrier. The barrier
// is a separate kernel with one warp. A sum kernel that waited for other ranks would fill the GPU, and a
// kernel of another lane that they wait for could not start.

template <class T>
void sum_of_peers(const lane& on, const peer_group& g, T* to, const T* from, std::size_t count) {
  meet(on, g);
  launch_sum(on, "sum_of_peers", &g.words[g.place]->failed, to,
             terms_at(g, from, static_cast<std::size_t>(g.place) * count), count);
  meet(on, g);
}

template <class T>
void sum_up(const lane& on, T* to, const sum_terms<T>& terms, std::size_t count) {
  launch_sum(on, "sum_up", nullptr, to, terms, count);
}

template <class T>
void gather_from_peers(const lane& on, const peer_group& g, T* to, const T* from, std::size_t count) {
  meet(on, g);
  launch_wide<T>(on, "gather_from_peers", gather_parts<wide<T>, T>, gather_parts<1, T>,
                 packable<wide<T>>(count, to, from), g.ranks, count, g, to, g.offset_of(from), count);
  meet(on, g);
}

template <class T>
void sum_among_peers(const lane& on, const peer_group& g, T* data, std::size_t count) {
  meet(on, g);
  launch_wide<T>(on, "sum_among_peers", sum_all<wide<T>, T>, sum_all<1, T>, packable<wide<T>>(count, data), 1,
                 count, g, terms_at<T>(g, data), g.offset_of(data), count);
  meet(on, g);
}

template void sum_of_peers<float>(const lane&, const peer_group&, float*, const float*, std::size_t);
template void sum_of_peers<bf16>(const lane&, const peer_group&, bf16*, const bf16*, std::size_t);
template void sum_up<float>(const lane&, float*, const sum_terms<float>&, std::size_t);
template void sum_up<bf16>(const lane&, bf16*, const sum_terms<bf16>&, std::size_t);
template void gather_from_peers<float>(const lane&, const peer_group&, float*, const float*, std::size_t);
template void gather_from_peers<bf16>(const lane&, const peer_group&, bf16*, const bf16*, std::size_t);
template void sum_among_peers<float>(const lane&, const peer_group&, float*, std::size_t);
template void sum_among_peers<bf16>(const lane&, const peer_group&, bf16*, std::size_t);

}  // namespace rankc::runtime::cuda
