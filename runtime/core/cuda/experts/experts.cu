// SPDX-License-Identifier: Apache-2.0
// Copies tokens to the slots of their experts, and back. Every sum has a fixed order.
#include <rankc/runtime/cuda/kernels.hpp>

#include "../device/device.cuh"

namespace rankc::runtime::cuda {
namespace {

constexpr int arrange_threads = 1024, pick_threads = 256, picks_of_block = pick_threads / warp_size;

/// The sum of integers over the block, returned to every thread.
__device__ int block_count(int x) {
  __shared__ int of_warp[warp_size];
  x = __reduce_add_sync(0xffffffffu, x);
  __syncthreads();  // the last call's result has been read
  if (threadIdx.x % warp_size == 0) of_warp[threadIdx.x / warp_size] = x;
  __syncthreads();
  return __reduce_add_sync(0xffffffffu, of_warp[threadIdx.x % warp_size]);
}

/// Gives the choices of an expert among `all` the slots from `next` on, in order. From `end` on there are no
/// slots. A warp has contiguous choices, and counts the choices of earlier warps once.
__device__ void give_slots(std::int32_t* places, const std::int32_t* chosen, int all, int expert, int next,
                           int end) {
  const int lane = threadIdx.x % warp_size, warp = threadIdx.x / warp_size;
  const int each = (all + arrange_threads - 1) / arrange_threads * warp_size, first = warp * each,
            last = min(all, first + each);
  __shared__ int of_warp[warp_size];
  int own = 0;
#pragma unroll 8
  for (int i = first + lane; i < last; i += warp_size) own += chosen[i] == expert;
  own = __reduce_add_sync(0xffffffffu, own);
  if (lane == 0) of_warp[warp] = own;
  __syncthreads();
  next += __reduce_add_sync(0xffffffffu, lane < warp ? of_warp[lane] : 0);
#pragma unroll 8
  for (int begin = first; begin < last; begin += warp_size) {
    const int i = begin + lane;
    const bool is_own = i < last && chosen[i] == expert;
    const unsigned mates = __ballot_sync(0xffffffffu, is_own);
    const int place = next + __popc(mates & ((1u << lane) - 1));
    if (is_own) places[i] = place < end ? place : -1;
    next += __popc(mates);
  }
}

/// One block for each expert. It counts the choices of lower experts and its own, then gives its own their
/// slots.
/// Shapes: places and chosen (all), offsets (2, segments).
__global__ void __launch_bounds__(arrange_threads)
    arrange_expert(std::int32_t* places, std::int32_t* offsets, const std::int32_t* chosen, int all,
                   int segments) {
  const int expert = static_cast<int>(blockIdx.x);
  int lower = 0, own = 0;
  for (int i = threadIdx.x; i < all; i += arrange_threads) {
    lower += chosen[i] < expert;
    own += chosen[i] == expert;
  }
  const int begin = block_count(lower), count = block_count(own);
  if (threadIdx.x == 0) {
    offsets[expert] = begin;
    offsets[segments + expert] = begin + count;
  }
  give_slots(places, chosen, all, expert, begin, begin + count);
}

/// One block for each group and expert: the number of choices that the expert keeps.
/// Shapes: taken (experts, groups), chosen (groups, of_group).
__global__ void __launch_bounds__(arrange_threads)
    count_taken(std::int32_t* taken, const std::int32_t* chosen, int of_group, int most) {
  const int group = static_cast<int>(blockIdx.x), expert = static_cast<int>(blockIdx.y);
  const std::int32_t* own = chosen + static_cast<std::size_t>(group) * of_group;
  int count = 0;
  for (int i = threadIdx.x; i < of_group; i += arrange_threads) count += own[i] == expert;
  count = block_count(count);
  if (threadIdx.x == 0) taken[expert * gridDim.x + group] = min(count, most);
}
/// One block: turns counts into first slots (a prefix sum), followed by the total.
/// Shapes: taken (all + 1).
__global__ void __launch_bounds__(arrange_threads) add_taken(std::int32_t* taken, int all) {
  const int lane = threadIdx.x % warp_size, warp = threadIdx.x / warp_size;
  __shared__ int of_warp[2][warp_size];
  int before = 0;
  for (int first = 0, turn = 0; first < all; first += arrange_threads, turn ^= 1) {
    const int i = first + static_cast<int>(threadIdx.x), own = i < all ? taken[i] : 0;
    int sum = own;  // the warp's prefix sum
    for (int step = 1; step < warp_size; step *= 2) {
      const int other = __shfl_up_sync(0xffffffffu, sum, step);
      sum += lane >= step ? other : 0;
    }
    if (lane == warp_size - 1) of_warp[turn][warp] = sum;
    __syncthreads();
    int of_lower = 0, here = 0;
    for (int w = 0; w < warp_size; ++w) {
      of_lower += w < warp ? of_warp[turn][w] : 0;
      here += of_warp[turn][w];
    }
    if (i < all) taken[i] = before + of_lower + sum - own;
    before += here;
  }
  if (threadIdx.x == 0) taken[all] = before;
}
/// One block for each group and expert, whose slots start at `begins`.
/// Shapes: begins (experts, groups), then the total.
__global__ void __launch_bounds__(arrange_threads)
    place_taken(std::int32_t* places, std::int32_t* offsets, const std::int32_t* begins,
                const std::int32_t* chosen, int of_group) {
  const int group = static_cast<int>(blockIdx.x), groups = static_cast<int>(gridDim.x),
            expert = static_cast<int>(blockIdx.y), experts = static_cast<int>(gridDim.y);
  const std::int32_t* begin = begins + expert * groups;
  if (group == 0 && threadIdx.x == 0) {
    offsets[expert] = begin[0];
    offsets[experts + expert] = begin[groups];
  }
  const std::size_t first = static_cast<std::size_t>(group) * of_group;
  give_slots(places + first, chosen + first, of_group, expert, begin[group], begin[group + 1]);
}

/// One thread for each choice and each expert: selects the slots of the `own` experts from `first` on. These
/// slots are contiguous and are renumbered from 0.
/// Shapes: own_places and places (all), own_offsets (2, own), offsets (2, experts).
__global__ void keep_own(std::int32_t* own_places, std::int32_t* own_offsets, const std::int32_t* places,
                         const std::int32_t* offsets, int all, int own, int first, int experts) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int from = offsets[first], until = offsets[experts + first + own - 1];
  if (i < all) own_places[i] = places[i] >= from && places[i] < until ? places[i] - from : -1;
  if (i < own) {
    own_offsets[i] = offsets[first + i] - from;
    own_offsets[own + i] = offsets[experts + first + i] - from;
  }
}

/// One block for each token, which copies the row to each of its slots.
template <int N, class T>
__global__ void dispatch_rows(T* slots, const T* x, const std::int32_t* places, int picks, int width) {
  const std::size_t n = blockIdx.x;
  for (int c = static_cast<int>(threadIdx.x) * N; c < width; c += static_cast<int>(blockDim.x) * N) {
    const auto row = load<T, N>(x + n * width + c);
    for (int k = 0; k < picks; ++k)
      if (const int slot = places[n * picks + k]; slot >= 0)
        store(slots + static_cast<std::size_t>(slot) * width + c, row);
  }
}

/// One block for each token, which adds up its slots, multiplied by their weights if there are any.
template <int N, class T>
__global__ void add_slots(T* y, const T* slots, const float* weights, const std::int32_t* places, int picks,
                          int width) {
  const std::size_t n = blockIdx.x;
  for (int c = static_cast<int>(threadIdx.x) * N; c < width; c += static_cast<int>(blockDim.x) * N) {
    float sum[N] = {};
    for (int k = 0; k < picks; ++k) {
      if (places[n * picks + k] < 0) continue;
      const float weight = weights ? weights[n * picks + k] : 1.0f;
      float row[N];
      unpack(row, load<T, N>(slots + static_cast<std::size_t>(places[n * picks + k]) * width + c));
      for (int i = 0; i < N; ++i) sum[i] += weight * row[i];
    }
    store(y + n * width + c, packed<T>(sum));
  }
}

/// One warp for each choice: dslot = weight dy, dweight = sum(dy slot), or 0 if the choice was dropped.
template <int N, class T>
__global__ void __launch_bounds__(pick_threads)
    combine_backward(T* dslots, float* dweights, const T* dy, const T* slots, const float* weights,
                     const std::int32_t* places, int all, int picks, int width) {
  const std::size_t pick = std::size_t{blockIdx.x} * picks_of_block + threadIdx.x / warp_size;
  const int lane = threadIdx.x % warp_size;
  if (pick >= all) return;
  if (places[pick] < 0) {
    if (lane == 0) dweights[pick] = 0.0f;
    return;
  }
  const std::size_t slot = static_cast<std::size_t>(places[pick]) * width;
  const T* grad = dy + pick / picks * width;
  const float weight = weights[pick];
  float dot = 0.0f;
#pragma unroll 4
  for (int c = lane * N; c < width; c += warp_size * N) {
    float d[N], made[N];
    unpack(d, load<T, N>(grad + c));
    unpack(made, load<T, N>(slots + slot + c));
    for (int i = 0; i < N; ++i) {
      dot += d[i] * made[i];
      d[i] *= weight;
    }
    store(dslots + slot + c, packed<T>(d));
  }
  dot = warp_sum(dot);
  if (lane == 0) dweights[pick] = dot;
}

template <class T>
void add_up(const lane& on, const char* name, at y, at slots, const float* weights, at places, int tokens,
            int picks, int width) {
  T *to = on.at<T>(y), *from = on.at<T>(slots);
  const std::int32_t* place = on.at<std::int32_t>(places);
  constexpr int n = wide<T>;
  if (packable<n>(width, to, from))
    launch(on, name, add_slots<n, T>, tokens, row_threads(width / n), 0, to, from, weights, place, picks,
           width);
  else
    launch(on, name, add_slots<1, T>, tokens, row_threads(width), 0, to, from, weights, place, picks, width);
}

}  // namespace

template <class T>
void arrange(const lane& on, at places, at offsets, at chosen, int tokens, int picks, int segments) {
  launch(on, "arrange", arrange_expert, segments, arrange_threads, 0, on.at<std::int32_t>(places),
         on.at<std::int32_t>(offsets), on.at<std::int32_t>(chosen), tokens * picks, segments);
}

template <class T>
void arrange_limited(const lane& on, at places, at offsets, at scratch, at chosen, int groups, int group,
                     int picks, int experts, int most) {
  std::int32_t *taken = on.at<std::int32_t>(scratch), *choice = on.at<std::int32_t>(chosen);
  const dim3 each(static_cast<unsigned>(groups), static_cast<unsigned>(experts));
  const int of_group = group * picks;
  launch(on, "count_taken", count_taken, each, arrange_threads, 0, taken, choice, of_group, most);
  launch(on, "add_taken", add_taken, 1, arrange_threads, 0, taken, groups * experts);
  launch(on, "arrange_limited", place_taken, each, arrange_threads, 0, on.at<std::int32_t>(places),
         on.at<std::int32_t>(offsets), taken, choice, of_group);
}

template <class T>
void own_slots(const lane& on, at own_places, at own_offsets, at places, at offsets, int tokens, int picks,
               int own, int first, int experts) {
  const int all = tokens * picks;
  launch(on, "own_slots", keep_own, ceil_div(all > own ? all : own, pick_threads), pick_threads, 0,
         on.at<std::int32_t>(own_places), on.at<std::int32_t>(own_offsets), on.at<std::int32_t>(places),
         on.at<std::int32_t>(offsets), all, own, first, experts);
}

template <class T>
void dispatch(const lane& on, at slots, at x, at places, int tokens, int picks, int width) {
  T *to = on.at<T>(slots), *from = on.at<T>(x);
  const std::int32_t* place = on.at<std::int32_t>(places);
  constexpr int n = wide<T>;
  if (packable<n>(width, to, from))
    launch(on, "dispatch", dispatch_rows<n, T>, tokens, row_threads(width / n), 0, to, from, place, picks,
           width);
  else
    launch(on, "dispatch", dispatch_rows<1, T>, tokens, row_threads(width), 0, to, from, place, picks, width);
}

template <class T>
void collect(const lane& on, at y, at slots, at places, int tokens, int picks, int width) {
  add_up<T>(on, "collect", y, slots, nullptr, places, tokens, picks, width);
}

template <class T>
void combine(const lane& on, at y, at slots, at weights, at places, int tokens, int picks, int width) {
  add_up<T>(on, "combine", y, slots, on.at<float>(weights), places, tokens, picks, width);
}

template <class T>
void combine_grad(const lane& on, at dslots, at dweights, at dy, at slots, at weights, at places, int tokens,
                  int picks, int width) {
  T *to = on.at<T>(dslots), *grad = on.at<T>(dy), *from = on.at<T>(slots);
  float *dw = on.at<float>(dweights), *w = on.at<float>(weights);
  const std::int32_t* place = on.at<std::int32_t>(places);
  constexpr int n = wide<T>;
  const int all = tokens * picks;
  if (packable<n>(width, to, grad, from))
    launch(on, "combine_grad", combine_backward<n, T>, ceil_div(all, picks_of_block), pick_threads, 0, to, dw,
           grad, from, w, place, all, picks, width);
  else
    launch(on, "combine_grad", combine_backward<1, T>, ceil_div(all, picks_of_block), pick_threads, 0, to, dw,
           grad, from, w, place, all, picks, width);
}

template void arrange<float>(const lane&, at, at, at, int, int, int);
template void arrange<bf16>(const lane&, at, at, at, int, int, int);
template void arrange_limited<float>(const lane&, at, at, at, at, int, int, int, int, int);
template void arrange_limited<bf16>(const lane&, at, at, at, at, int, int, int, int, int);
template void own_slots<float>(const lane&, at, at, at, at, int, int, int, int, int);
template void own_slots<bf16>(const lane&, at, at, at, at, int, int, int, int, int);
template void dispatch<float>(const lane&, at, at, at, int, int, int);
template void dispatch<bf16>(const lane&, at, at, at, int, int, int);
template void collect<float>(const lane&, at, at, at, int, int, int);
template void collect<bf16>(const lane&, at, at, at, int, int, int);
template void combine<float>(const lane&, at, at, at, at, int, int, int);
template void combine<bf16>(const lane&, at, at, at, at, int, int, int);
template void combine_grad<float>(const lane&, at, at, at, at, at, at, int, int, int);
template void combine_grad<bf16>(const lane&, at, at, at, at, at, at, int, int, int);

}  // namespace rankc::runtime::cuda
