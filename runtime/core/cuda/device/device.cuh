// SPDX-License-Identifier: Apache-2.0
// Device functions that all kernels share: conversion to and from f32, packs of elements for wide loads, and
// sums and maxima over a warp or a block in a fixed order.
#pragma once
#include "launch.cuh"

#include <algorithm>
#include <cstdint>

namespace rankc::runtime::cuda {

inline constexpr int warp_size = 32;

/// The multiprocessors of an H100 or H200, for grids of a fixed size. It is a constant, so that the order of
/// sums, and every bit, is the same on any device.
inline constexpr int processors = 132;

__device__ inline float to_float(float x) { return x; }
__device__ inline float to_float(bf16 x) { return __bfloat162float(x); }
template <class T>
__device__ T from_float(float x) {
  if constexpr (sizeof(T) == 2) return __float2bfloat16_rn(x);
  else return x;
}

/// N neighbouring elements, loaded and stored at once. The address must be a multiple of the pack's size.
template <class T, int N>
struct alignas(sizeof(T) * N) pack {
  T element[N];
};
template <class T, int N>
__device__ pack<T, N> load(const T* from) {
  return *reinterpret_cast<const pack<T, N>*>(from);
}
template <class T, int N>
__device__ void store(T* to, const pack<T, N>& p) {
  *reinterpret_cast<pack<T, N>*>(to) = p;
}

/// unpack widens a pack to f32. packed rounds f32 numbers into a pack.
template <class T, int N>
__device__ void unpack(float (&to)[N], const pack<T, N>& from) {
  for (int i = 0; i < N; ++i) to[i] = to_float(from.element[i]);
}
template <class T, int N>
__device__ pack<T, N> packed(const float (&from)[N]) {
  pack<T, N> to;
  if constexpr (sizeof(T) == 2 && N % 2 == 0) {  // two per instruction
    for (int i = 0; i < N; i += 2) {
      const __nv_bfloat162 two = __floats2bfloat162_rn(from[i], from[i + 1]);
      to.element[i] = two.x;
      to.element[i + 1] = two.y;
    }
  } else {
    for (int i = 0; i < N; ++i) to.element[i] = from_float<T>(from[i]);
  }
  return to;
}

/// Makes the compiler treat the pack as a new one. It then keeps no values computed from the old pack, mostly
/// f32 copies, in registers.
template <class T, int N>
__device__ void forget(pack<T, N>& p) {
  if constexpr (sizeof(p) % sizeof(unsigned) == 0)
    for (unsigned i = 0; i < sizeof(p) / sizeof(unsigned); ++i)
      asm volatile("" : "+r"(reinterpret_cast<unsigned*>(&p)[i]));
}

inline constexpr float log2_e = 1.4426950408889634f;

/// 2^x in one instruction, within 2 ulp. Results below the normal numbers are 0.
__device__ inline float two_to_the(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// Exponentials and sigmoids with the accuracy of T. Their arguments are in units that save a multiplication:
/// for 16-bit types they are exponents of two.
template <class T>
inline constexpr float exp_unit = sizeof(T) == 2 ? log2_e : 1.0f;
template <class T>
__device__ float exp_of_units(float x) {
  if constexpr (sizeof(T) == 2) return two_to_the(x);
  else return expf(x);
}
template <class T>
__device__ float sigmoid_of_units(float x) {
  float y = 1.0f + exp_of_units<T>(-x);
  if constexpr (sizeof(T) == 2) asm("rcp.approx.ftz.f32 %0, %0;" : "+f"(y));
  else y = 1.0f / y;
  return y;
}
template <class T>
__device__ float sigmoid(float x) {
  return sigmoid_of_units<T>(exp_unit<T> * x);
}

/// exp(x - top) for many x, with the accuracy of T.
template <class T>
class exp_from {
 public:
  __device__ explicit exp_from(float top) : top_(exp_unit<T> * top) {}
  __device__ float operator()(float x) const { return exp_of_units<T>(exp_unit<T> * x - top_); }

 private:
  float top_;
};

/// The elements of T in 16 bytes, the widest load.
template <class T>
inline constexpr int wide = 16 / sizeof(T);

/// True if rows of `width` elements at all these addresses can be read in packs of N.
template <int N, class... T>
bool packable(std::size_t width, const T*... at) {
  return width % N == 0 && (... && (reinterpret_cast<std::uintptr_t>(at) % (sizeof(T) * N) == 0));
}

__device__ inline float warp_sum(float x) {
  for (int step = warp_size / 2; step > 0; step /= 2) x += __shfl_xor_sync(0xffffffffu, x, step);
  return x;
}
__device__ inline float warp_max(float x) {
  for (int step = warp_size / 2; step > 0; step /= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, step));
  return x;
}

/// The sum over the block, returned to every thread. `blockDim.x` is a multiple of 32, at most 1024.
__device__ inline float block_sum(float x) {
  __shared__ float of_warp[warp_size];
  const int lane = threadIdx.x % warp_size, warp = threadIdx.x / warp_size;
  x = warp_sum(x);
  __syncthreads();  // the last call's result has been read
  if (lane == 0) of_warp[warp] = x;
  __syncthreads();
  return warp_sum(lane < static_cast<int>(blockDim.x) / warp_size ? of_warp[lane] : 0.0f);
}
__device__ inline float block_max(float x) {
  __shared__ float of_warp[warp_size];
  const int lane = threadIdx.x % warp_size, warp = threadIdx.x / warp_size;
  x = warp_max(x);
  __syncthreads();
  if (lane == 0) of_warp[warp] = x;
  __syncthreads();
  return warp_max(lane < static_cast<int>(blockDim.x) / warp_size ? of_warp[lane] : -INFINITY);
}

/// The threads of a block that processes a row of `items`: whole warps, at most `most` threads.
inline unsigned row_threads(int items, int most = 256) {
  const int warps = (items + warp_size - 1) / warp_size;
  return static_cast<unsigned>(warp_size * std::clamp(warps, 1, most / warp_size));
}

inline constexpr int ceil_div(std::size_t n, std::size_t by) { return static_cast<int>((n + by - 1) / by); }

}  // namespace rankc::runtime::cuda
