// SPDX-License-Identifier: Apache-2.0
// A user's own op, y = x sigmoid(x): its row for plans, and its kernels for both targets.
// Source: Hendrycks and Gimpel 2016.
#pragma once

#if defined(RANKC_HOST_KERNELS)

#include <rankc/runtime/host/rank.hpp>

#include <cmath>

namespace user {

template <class T>
void silu(const rankc::host::lane& on, rankc::runtime::at y, rankc::runtime::at x, std::size_t count) {
  T* to = on.at<T>(y);
  const T* from = on.at<T>(x);
  for (std::size_t i = 0; i < count; ++i) to[i] = from[i] / (1 + std::exp(-from[i]));
}
template <class T>
void silu_grad(const rankc::host::lane& on, rankc::runtime::at dx, rankc::runtime::at dy,
               rankc::runtime::at x, std::size_t count) {
  T* to = on.at<T>(dx);
  const T *grad = on.at<T>(dy), *from = on.at<T>(x);
  for (std::size_t i = 0; i < count; ++i) {
    const T s = 1 / (1 + std::exp(-from[i]));
    to[i] = grad[i] * s * (1 + from[i] * (1 - s));
  }
}

}  // namespace user

#elif defined(RANKC_CUDA_KERNELS)

#include <rankc/runtime/cuda/rank.hpp>

namespace user {

template <class T>
void silu(const rankc::cuda::lane&, rankc::runtime::at y, rankc::runtime::at x, std::size_t count);
template <class T>
void silu_grad(const rankc::cuda::lane&, rankc::runtime::at dx, rankc::runtime::at dy, rankc::runtime::at x,
               std::size_t count);

#ifdef __CUDACC__
template <class T>
__global__ void silu_kernel(T* y, const T* x, std::size_t count) {
  const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const float v = static_cast<float>(x[i]);
  y[i] = static_cast<T>(v / (1 + expf(-v)));
}
template <class T>
__global__ void silu_grad_kernel(T* dx, const T* dy, const T* x, std::size_t count) {
  const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const float v = static_cast<float>(x[i]), s = 1 / (1 + expf(-v));
  dx[i] = static_cast<T>(static_cast<float>(dy[i]) * s * (1 + v * (1 - s)));
}
inline unsigned blocks(std::size_t count) { return static_cast<unsigned>((count + 255) / 256); }

template <class T>
void silu(const rankc::cuda::lane& on, rankc::runtime::at y, rankc::runtime::at x, std::size_t count) {
  // clang-format off
  silu_kernel<<<blocks(count), 256, 0, on.stream>>>(on.at<T>(y), on.at<T>(x), count);
  // clang-format on
}
template <class T>
void silu_grad(const rankc::cuda::lane& on, rankc::runtime::at dx, rankc::runtime::at dy,
               rankc::runtime::at x, std::size_t count) {
  // clang-format off
  silu_grad_kernel<<<blocks(count), 256, 0, on.stream>>>(on.at<T>(dx), on.at<T>(dy), on.at<T>(x), count);
  // clang-format on
}
template decltype(silu<float>) silu<float>;
template decltype(silu<rankc::cuda::bf16>) silu<rankc::cuda::bf16>;
template decltype(silu_grad<float>) silu_grad<float>;
template decltype(silu_grad<rankc::cuda::bf16>) silu_grad<rankc::cuda::bf16>;
#endif

}  // namespace user

#else

#include <rankc/ops.hpp>

namespace user {

using namespace rankc;
using namespace rankc::ports;

inline constexpr op_row silu_grad_row{
    .name = "step",  // generated text uses this name for what a rank runs
    .ports = {out("dx", "tokens width").over("dy"), in("dy", "tokens width"), in("x", "tokens width")},
    .rule = placement_rules::gradient_of_elementwise,
    .kernel = "user::silu_grad",
    .sizes = "tokens*width",
    .header = "silu.hpp"};
inline constexpr op_row silu_row{
    .name = "silu",
    .ports = {out("y", "tokens width"), in("x", "tokens width")},
    .rule = placement_rules::elementwise<false>,
    .dual = [](backward& b) { b.give("x", b.apply(silu_grad_row, {b.gradient("y"), b["x"]})); },
    .kernel = "user::silu",
    .sizes = "tokens*width",
    .header = "silu.hpp"};

constexpr value silu(operand x) { return x.v.in->apply(silu_row, {x.v}, x.from); }

}  // namespace user

#endif
