// SPDX-License-Identifier: Apache-2.0
// The kernels of a pipeline edge. A kernel that waits for the other GPU takes one warp where it may wait
// long, sleeps between looks, and gives up when the host says that a rank has failed.
#include "peer_edges.hpp"

#include "peer_words.cuh"

#include <algorithm>

namespace rankc::cuda {
namespace {

constexpr int threads = 512, most_blocks_of_a_copy = 32, most_waiting_blocks = 4;
constexpr std::size_t bytes_of_a_block = 16384;

/// This thread's share of a copy, in elements of type T; what is left is copied byte by byte.
template <class T>
__device__ void copy_share(std::byte* to, const std::byte* from, std::size_t bytes) {
  const std::size_t count = bytes / sizeof(T), step = std::size_t{gridDim.x} * threads;
  const std::size_t first = std::size_t{blockIdx.x} * threads + threadIdx.x;
  const T* source = reinterpret_cast<const T*>(from);
  T* target = reinterpret_cast<T*>(to);
  std::size_t i = first;
  for (; i + 3 * step < count; i += 4 * step) {
    const T a = source[i], b = source[i + step], c = source[i + 2 * step], d = source[i + 3 * step];
    target[i] = a;
    target[i + step] = b;
    target[i + 2 * step] = c;
    target[i + 3 * step] = d;
  }
  for (; i < count; i += step) target[i] = source[i];
  const std::size_t rest = count * sizeof(T) + first;
  if (rest < bytes) to[rest] = from[rest];
}

__global__ void __launch_bounds__(warp_size) wait_for_receiver(peer_edge e, const volatile unsigned* stop) {
  if (e.mine != nullptr && threadIdx.x == 0) reached(&e.mine->ready, e.mine->done + 1, stop);
}

__global__ void __launch_bounds__(threads)
    store_message(peer_edge e, const std::byte* from, std::size_t bytes, const volatile unsigned* stop) {
  __shared__ std::byte* to;
  if (e.mine == nullptr) return;
  const word message = e.mine->done + 1;
  if (threadIdx.x == 0) {
    to = nullptr;
    if (reached(&e.mine->ready, message, stop))
      to = reinterpret_cast<std::byte*>(*static_cast<const volatile word*>(&e.mine->address));
  }
  __syncthreads();
  if (to == nullptr) return;
  const auto both = reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from);
  if (both % sizeof(uint4) == 0) copy_share<uint4>(to, from, bytes);
  else if (both % sizeof(std::uint32_t) == 0) copy_share<std::uint32_t>(to, from, bytes);
  else copy_share<std::byte>(to, from, bytes);
  __syncthreads();
  if (threadIdx.x != 0) return;
  __threadfence_system();  // the block's stores, before its arrival and the flag that follows the last one
  if (atomicAdd(&e.mine->arrived, 1u) + 1 < gridDim.x) return;
  __threadfence_system();
  e.mine->arrived = 0;
  e.mine->done = message;
  store_release(&e.theirs->full, message);
}

__global__ void __launch_bounds__(warp_size)
    receive_message(peer_edge e, std::byte* to, const volatile unsigned* stop) {
  if (e.mine == nullptr || threadIdx.x != 0) return;
  const word message = e.mine->done + 1;
  *static_cast<volatile word*>(&e.theirs->address) = reinterpret_cast<word>(to);
  store_release(&e.theirs->ready, message);
  if (reached(&e.mine->full, message, stop)) e.mine->done = message;
}

}  // namespace

void store_to_peer(const lane& on, const peer_edge& e, const char* name, const std::byte* from, std::size_t bytes) {
  const int blocks = std::clamp(ceil_div(bytes, bytes_of_a_block), 1, most_blocks_of_a_copy);
  if (blocks > most_waiting_blocks) wait_for_receiver<<<1, warp_size, 0, on.stream>>>(e, on.of->stop);
  store_message<<<blocks, threads, 0, on.stream>>>(e, from, bytes, on.of->stop);
  check(on, cudaGetLastError(), name);
}

void receive_from_peer(const lane& on, const peer_edge& e, const char* name, std::byte* to) {
  receive_message<<<1, warp_size, 0, on.stream>>>(e, to, on.of->stop);
  check(on, cudaGetLastError(), name);
}

void load_peer_kernels(const lane& on) {
  const volatile unsigned* stop = on.of->stop;
  wait_for_receiver<<<1, warp_size, 0, on.stream>>>({}, stop);
  store_message<<<1, threads, 0, on.stream>>>({}, nullptr, 0, stop);
  receive_message<<<1, warp_size, 0, on.stream>>>({}, nullptr, stop);
  check(on, cudaGetLastError(), "kernels of pipeline edges");
  check(on, cudaStreamSynchronize(on.stream), "kernels of pipeline edges: cudaStreamSynchronize");
}

}  // namespace rankc::cuda
