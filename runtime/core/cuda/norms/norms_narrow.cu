// SPDX-License-Identifier: Apache-2.0
// A team is a part of a warp, with one thread for each pack of a row. It has several rows in flight, because
// one row would leave memory idle.
// Source: Zhang and Sennrich 2019.
#include "norms_narrow.hpp"

#include "../device/device.cuh"

#include <algorithm>
#include <type_traits>

namespace rankc::runtime::cuda {
namespace {

constexpr int n = 8, threads = 256, rows_forward = 4, rows_backward = 2;

/// The sum over a team, returned to each of its threads.
template <int Lanes>
__device__ float team_sum(float x) {
#pragma unroll
  for (int step = Lanes / 2; step > 0; step /= 2) x += __shfl_xor_sync(0xffffffffu, x, step);
  return x;
}

/// y = x / rms * gain. y may be x.
/// Shapes: x and y (tokens, 8 Lanes), stats f32 (tokens) 1/rms, gain (8 Lanes).
template <int Lanes>
__global__ void __launch_bounds__(threads)
    forward(bf16* y, float* stats, const bf16* x, const bf16* gain, int tokens, float eps) {
  constexpr int width = Lanes * n, teams = threads / Lanes;
  const int lane = threadIdx.x % Lanes, mine = threadIdx.x / Lanes;
  const std::size_t first = std::size_t{blockIdx.x} * teams * rows_forward + mine;
  pack<bf16, n> row[rows_forward];
#pragma unroll
  for (int r = 0; r < rows_forward; ++r)
    if (const std::size_t token = first + r * teams; token < tokens)
      row[r] = load<bf16, n>(x + token * width + lane * n);
  float of_gain[n];
  unpack(of_gain, load<bf16, n>(gain + lane * n));
#pragma unroll
  for (int r = 0; r < rows_forward; ++r) {
    const std::size_t token = first + r * teams;
    const bool is_row = token < tokens;
    float value[n] = {}, squares = 0.0f;
    if (is_row) unpack(value, row[r]);
    for (int i = 0; i < n; ++i) squares += value[i] * value[i];
    const float scale = 1.0f / sqrtf(team_sum<Lanes>(squares) / width + eps);
    if (!is_row) continue;
    if (lane == 0) stats[token] = scale;
    for (int i = 0; i < n; ++i) value[i] = value[i] * scale * of_gain[i];
    store(y + token * width + lane * n, packed<bf16>(value));
  }
}

/// dx = s (e - xhat mean(e xhat)), with e = dy gain, xhat = x s; and a block's sums of dy xhat.
/// Shapes: as above, partial f32 (blocks, 8 Lanes). dx may be dy.
template <int Lanes>
__global__ void __launch_bounds__(threads) backward(bf16* dx, float* partial, const bf16* dy, const bf16* x,
                                                    const float* stats, const bf16* gain, int tokens) {
  constexpr int width = Lanes * n, teams = threads / Lanes, at_once = teams * rows_backward;
  __shared__ float of_team[teams][width];
  const int lane = threadIdx.x % Lanes, mine = threadIdx.x / Lanes;
  float of_gain[n], dgain[n] = {};
  unpack(of_gain, load<bf16, n>(gain + lane * n));
  for (std::size_t begin = std::size_t{blockIdx.x} * at_once; begin < tokens;
       begin += std::size_t{gridDim.x} * at_once) {
    pack<bf16, n> grads[rows_backward], rows[rows_backward];
    float scale[rows_backward];
#pragma unroll
    for (int r = 0; r < rows_backward; ++r)
      if (const std::size_t token = begin + r * teams + mine; token < tokens) {
        grads[r] = load<bf16, n>(dy + token * width + lane * n);
        rows[r] = load<bf16, n>(x + token * width + lane * n);
        scale[r] = stats[token];
      }
#pragma unroll
    for (int r = 0; r < rows_backward; ++r) {
      const std::size_t token = begin + r * teams + mine;
      const bool is_row = token < tokens;
      float d[n] = {}, hat[n] = {}, sum = 0.0f;
      if (is_row) {
        unpack(d, grads[r]);
        unpack(hat, rows[r]);
      }
      for (int i = 0; i < n; ++i) {
        hat[i] *= is_row ? scale[r] : 0.0f;
        dgain[i] += d[i] * hat[i];
        d[i] *= of_gain[i];
        sum += d[i] * hat[i];
      }
      const float mean = team_sum<Lanes>(sum) / width;
      if (!is_row) continue;
      for (int i = 0; i < n; ++i) d[i] = scale[r] * (d[i] - hat[i] * mean);
      store(dx + token * width + lane * n, packed<bf16>(d));
    }
  }
  for (int i = 0; i < n; ++i) of_team[mine][lane * n + i] = dgain[i];
  __syncthreads();
  for (int c = threadIdx.x; c < width; c += threads) {
    float total = 0.0f;
    for (int t = 0; t < teams; ++t) total += of_team[t][c];
    partial[std::size_t{blockIdx.x} * width + c] = total;
  }
}

/// Calls `call` with the number of threads of a team as a constant.
template <class Call>
void with_lanes(int width, Call call) {
  if (width == 64) call(std::integral_constant<int, 8>{});
  else if (width == 128) call(std::integral_constant<int, 16>{});
  else call(std::integral_constant<int, 32>{});
}

}  // namespace

void narrow_rms_norm(const lane& on, bf16* y, float* stats, const bf16* x, const bf16* gain, int tokens,
                     int width, float eps) {
  with_lanes(width, [&](auto lanes) {
    launch(on, "rms_norm", forward<lanes()>, ceil_div(tokens, threads / lanes() * rows_forward), threads, 0,
           y, stats, x, gain, tokens, eps);
  });
}

int narrow_rms_norm_grad(const lane& on, bf16* dx, const bf16* dy, const bf16* x, const float* stats,
                         const bf16* gain, int tokens, int width) {
  constexpr int most = 3 * processors;  // all resident at once
  int blocks = 0;
  with_lanes(width, [&](auto lanes) {
    blocks = std::min(most, static_cast<int>(ceil_div(tokens, threads / lanes() * rows_backward)));
    launch(on, "rms_norm_grad", backward<lanes()>, blocks, threads, 0, dx,
           reinterpret_cast<float*>(on.workspace), dy, x, stats, gain, tokens);
  });
  return blocks;
}

}  // namespace rankc::runtime::cuda
