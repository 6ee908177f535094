// SPDX-License-Identifier: Apache-2.0
// Collectives and messages among ranks that share a GPU. A collective is a block of threads on each rank: it
// writes a chunk where the others can read it, with a barrier before and after they read. A message goes
// through a mailbox, chunk by chunk.
#include "exchange.hpp"

#include <cuda_bf16.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace one_gpu {
namespace {

constexpr int threads = 512, most_messages = 64;

using word = unsigned long long;

__device__ bool reached(const member& m, const word* counter, word wanted) {
  while (*static_cast<const volatile word*>(counter) < wanted) {
    if (*static_cast<const volatile int*>(m.aborted) != 0) return false;
    __nanosleep(200);
  }
  return true;
}
/// Write a counter by one thread, after all previous writes of the block's threads.
__device__ void publish(word* counter, word value) {
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) *static_cast<volatile word*>(counter) = value;
}
/// Wait in all threads until a counter is reached. Returns: false if the communicator was aborted.
__device__ bool await(const member& m, const word* counter, word wanted) {
  __shared__ bool there;
  __syncthreads();
  if (threadIdx.x == 0) there = reached(m, counter, wanted);
  __syncthreads();
  __threadfence();
  return there;
}

__device__ bool meet(const member& m) {
  const word mine = *static_cast<volatile word*>(&m.at->turn[m.place]) + 1;
  publish(&m.at->turn[m.place], mine);
  bool all = true;
  for (int i = 0; i < m.members && all; ++i) all = await(m, &m.at->turn[i], mine);
  return all;
}

/// Read what other members wrote, past this multiprocessor's cache.
template <class T>
__device__ T fresh(const T* at) {
  return *static_cast<const volatile T*>(at);
}
template <>
__device__ __nv_bfloat16 fresh(const __nv_bfloat16* at) {
  return __ushort_as_bfloat16(*reinterpret_cast<const volatile unsigned short*>(at));
}

template <class T>
using wide = std::conditional_t<std::is_same_v<T, double>, double, float>;
template <class T>
__device__ wide<T> widened(T x) {
  return static_cast<wide<T>>(x);
}

template <class T>
__device__ const T* stage_of(const member& m, int place) {
  return reinterpret_cast<const T*>(m.at->stage[place]);
}
template <class T>
__device__ void put(const member& m, const T* from, std::size_t count) {
  T* const mine = reinterpret_cast<T*>(m.at->stage[m.place]);
  for (std::size_t i = threadIdx.x; i < count; i += threads) mine[i] = from[i];
}
template <class T>
__device__ void take(const member& m, T* to, int place, std::size_t count) {
  for (std::size_t i = threadIdx.x; i < count; i += threads) to[i] = fresh(stage_of<T>(m, place) + i);
}
/// Reduce in the order of the members, so that all have the same result.
template <class T>
__device__ void reduce(const member& m, const collective& c, T* to, std::size_t count) {
  for (std::size_t i = threadIdx.x; i < count; i += threads) {
    wide<T> all = 0;
    for (int place = 0; place < m.members; ++place) {
      const wide<T> part = widened(fresh(stage_of<T>(m, place) + i)) * static_cast<wide<T>>(c.factor);
      if (place == 0) all = part;
      else if (!c.largest) all += part;
      else if (part > all) all = part;
    }
    to[i] = static_cast<T>(all);
  }
}

/// For every chunk: all members stage theirs, pass a barrier, use the staged chunks, and pass another
/// barrier.
template <class T, class Use>
__device__ bool by_chunks(const member& m, const T* from, std::size_t count, bool puts, Use use) {
  constexpr std::size_t most = stage_bytes / sizeof(T);
  for (std::size_t first = 0; first < count; first += most) {
    const std::size_t now = count - first < most ? count - first : most;
    if (puts) put(m, from + first, now);
    if (!meet(m)) return false;
    use(first, now);
    if (!meet(m)) return false;
  }
  return true;
}

template <class T>
__global__ void __launch_bounds__(threads) run(member m, collective c) {
  const T* const from = static_cast<const T*>(c.from);
  T* const to = static_cast<T*>(c.to);
  switch (c.kind) {
    case what::all_reduce:
      by_chunks(m, from, c.count, true,
                [&](std::size_t first, std::size_t now) { reduce(m, c, to + first, now); });
      return;
    case what::all_gather:
      by_chunks(m, from, c.count, true, [&](std::size_t first, std::size_t now) {
        for (int place = 0; place < m.members; ++place) take(m, to + place * c.count + first, place, now);
      });
      return;
    case what::reduce_scatter:
      for (int place = 0; place < m.members; ++place)
        if (!by_chunks(m, from + place * c.count, c.count, true, [&](std::size_t first, std::size_t now) {
              if (place == m.place) reduce(m, c, to + first, now);
            }))
          return;
      return;
    case what::broadcast:
      by_chunks(m, from, c.count, m.place == c.root,
                [&](std::size_t first, std::size_t now) { take(m, to + first, c.root, now); });
  }
}

struct group_of_messages {
  message all[most_messages];
  int first[most_messages + 1];  // first message of each block
};

__device__ bool send(const member& m, const message& s) {
  word* const sent = &m.at->sent[m.place][s.peer];
  std::byte* const mail = m.at->mail[m.place][s.peer];
  for (std::size_t first = 0; first < s.bytes; first += mail_bytes) {
    const word before = fresh(sent);
    if (!await(m, &m.at->taken[m.place][s.peer], before)) return false;
    const std::size_t now = s.bytes - first < mail_bytes ? s.bytes - first : mail_bytes;
    for (std::size_t i = threadIdx.x; i < now; i += threads) mail[i] = s.data[first + i];
    publish(sent, before + 1);
    __syncthreads();
  }
  return true;
}
__device__ bool receive(const member& m, const message& r) {
  word* const taken = &m.at->taken[r.peer][m.place];
  const unsigned char* const mail = reinterpret_cast<const unsigned char*>(m.at->mail[r.peer][m.place]);
  for (std::size_t first = 0; first < r.bytes; first += mail_bytes) {
    const word before = fresh(taken);
    if (!await(m, &m.at->sent[r.peer][m.place], before + 1)) return false;
    const std::size_t now = r.bytes - first < mail_bytes ? r.bytes - first : mail_bytes;
    for (std::size_t i = threadIdx.x; i < now; i += threads)
      r.data[first + i] = static_cast<std::byte>(fresh(mail + i));
    publish(taken, before + 1);
    __syncthreads();
  }
  return true;
}
__global__ void __launch_bounds__(threads) run(member m, const __grid_constant__ group_of_messages g) {
  for (int i = g.first[blockIdx.x]; i < g.first[blockIdx.x + 1]; ++i)
    if (!(g.all[i].sends ? send(m, g.all[i]) : receive(m, g.all[i]))) return;
}

[[noreturn]] void stop(const char* why) {
  std::fprintf(stderr, "ranks on one GPU: %s\n", why);
  std::abort();
}
void check_launch() {
  if (const cudaError_t status = cudaPeekAtLastError(); status != cudaSuccess)
    stop(cudaGetErrorString(status));
}

}  // namespace

void enqueue(const member& m, const collective& c, cudaStream_t stream) {
  switch (c.type) {
    case ncclFloat32:
      run<float><<<1, threads, 0, stream>>>(m, c);
      break;
    case ncclFloat64:
      run<double><<<1, threads, 0, stream>>>(m, c);
      break;
    case ncclBfloat16:
      run<__nv_bfloat16><<<1, threads, 0, stream>>>(m, c);
      break;
    case ncclInt32:
      if (c.kind == what::all_gather) {
        run<int><<<1, threads, 0, stream>>>(m, c);
        break;
      }
      [[fallthrough]];
    default:
      stop("a collective of a type that is not f32, f64 or bf16, nor i32 that are gathered");
  }
  check_launch();
}

void enqueue(const member& m, std::vector<message> all, cudaStream_t stream) {
  if (all.size() > most_messages) stop("more than 64 messages in a group");
  const auto block_of = [](const message& a) { return 2 * a.peer + (a.sends ? 1 : 0); };
  std::stable_sort(all.begin(), all.end(),
                   [&](const message& a, const message& b) { return block_of(a) < block_of(b); });
  group_of_messages g{};
  int blocks = 0;
  for (int i = 0; i < static_cast<int>(all.size()); ++i) {
    if (i == 0 ||
        block_of(all[static_cast<std::size_t>(i - 1)]) != block_of(all[static_cast<std::size_t>(i)]))
      g.first[blocks++] = i;
    g.all[i] = all[static_cast<std::size_t>(i)];
  }
  g.first[blocks] = static_cast<int>(all.size());
  run<<<blocks, threads, 0, stream>>>(m, g);
  check_launch();
}

}  // namespace one_gpu
