// SPDX-License-Identifier: Apache-2.0
// The gradient's norm and AdamW, in f32 whatever the program's type. The norm is summed in two stages of
// fixed order: every data-parallel rank clips by the same bits.
#include <rankc/runtime/cuda/kernels.hpp>

#include "device.cuh"

namespace rankc::cuda {
namespace {

constexpr int block = 256, most_blocks = 512;

/// partial[b] = sum of squares of the elements of block b's stride. Shapes: partial f32 (grid), g f32
/// (count).
template <int N>
__global__ void square_partials(float* partial, const float* g, std::size_t count) {
  float sum = 0.0f;
  for (std::size_t i = (std::size_t{blockIdx.x} * block + threadIdx.x) * N; i < count;
       i += std::size_t{gridDim.x} * block * N) {
    const auto part = load<float, N>(g + i);
    for (int n = 0; n < N; ++n) sum += part.element[n] * part.element[n];
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

/// total = or += sum of partial. One block.
__global__ void sum_squares_of(float* total, const float* partial, int partials, bool accumulate) {
  float sum = 0.0f;
  for (int i = threadIdx.x; i < partials; i += block) sum += partial[i];
  sum = block_sum(sum);
  if (threadIdx.x == 0) *total = (accumulate ? *total : 0.0f) + sum;
}

/// One element, as torch.optim.AdamW has it.
/// Source: Loshchilov and Hutter 2019.
__device__ void adamw_element(float& w, float g, float& m, float& v, const hyperparameters& h, float scale,
                              float keep) {
  g *= scale;
  m += h.new1 * (g - m);
  v = h.beta2 * v + h.new2 * g * g;
  w = w * keep - h.step_size * m / (sqrtf(v) * h.second_scale + h.eps);
}

/// Shapes: w, g, m, v f32 (count); norm_squared f32 (1).
template <int N>
__global__ void adamw_step(float* w, const float* g, float* m, float* v, const float* norm_squared,
                           const hyperparameters* input, std::size_t count, bool decay) {
  const std::size_t i = (std::size_t{blockIdx.x} * block + threadIdx.x) * N;
  if (i >= count) return;
  const hyperparameters h = *input;
  const float scale = h.clip > 0.0f ? fminf(1.0f, h.clip / (sqrtf(*norm_squared) + 1e-6f)) : 1.0f;
  const float keep = decay ? h.keep : 1.0f;
  auto in_w = load<float, N>(w + i);
  const auto in_g = load<float, N>(g + i);
  auto in_m = load<float, N>(m + i);
  auto in_v = load<float, N>(v + i);
  for (int n = 0; n < N; ++n)
    adamw_element(in_w.element[n], in_g.element[n], in_m.element[n], in_v.element[n], h, scale, keep);
  store(w + i, in_w);
  store(m + i, in_m);
  store(v + i, in_v);
}

}  // namespace

template <class T>
void sum_squares(rank& r, at total, at g, std::size_t count, bool accumulate) {
  const float* from = r.at<float>(g);
  float* partial = reinterpret_cast<float*>(r.workspace);
  const bool packs = packable<4>(count, from);
  const int needed = ceil_div(count, packs ? 4 * block : block);
  const int blocks = needed < most_blocks ? needed : most_blocks;
  if (packs) launch(r, "sum_squares", square_partials<4>, blocks, block, 0, partial, from, count);
  else launch(r, "sum_squares", square_partials<1>, blocks, block, 0, partial, from, count);
  launch(r, "sum_squares", sum_squares_of, 1, block, 0, r.at<float>(total), partial, blocks, accumulate);
}

template <class T>
void adamw(rank& r, at w, at g, at m, at v, at norm_squared, std::size_t count, bool decay) {
  float *weight = r.at<float>(w), *gradient = r.at<float>(g), *first = r.at<float>(m),
        *second = r.at<float>(v);
  if (packable<4>(count, weight, gradient, first, second))
    launch(r, "adamw", adamw_step<4>, ceil_div(count / 4, block), block, 0, weight, gradient, first, second,
           r.at<float>(norm_squared), r.input, count, decay);
  else
    launch(r, "adamw", adamw_step<1>, ceil_div(count, block), block, 0, weight, gradient, first, second,
           r.at<float>(norm_squared), r.input, count, decay);
}

template void sum_squares<float>(rank&, at, at, std::size_t, bool);
template void sum_squares<bf16>(rank&, at, at, std::size_t, bool);
template void adamw<float>(rank&, at, at, at, at, at, std::size_t, bool);
template void adamw<bf16>(rank&, at, at, at, at, at, std::size_t, bool);

}  // namespace rankc::cuda
