// SPDX-License-Identifier: Apache-2.0
// A user's own loss, scale * sum of x^2: a penalty that a layer adds to the step's loss.
#pragma once

#if defined(RANKC_HOST_KERNELS)

#include <rankc/runtime/host/rank.hpp>

namespace user {

template <class T>
void square_loss(const rankc::host::lane& on, rankc::runtime::at loss, rankc::runtime::at x,
                 std::size_t count, double scale, bool accumulate) {
  const T* from = on.at<T>(x);
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += static_cast<double>(from[i]) * from[i];
  T& out = *on.at<T>(loss);
  out = static_cast<T>((accumulate ? out : T{}) + scale * sum);
}
template <class T>
void square_loss_grad(const rankc::host::lane& on, rankc::runtime::at dx, rankc::runtime::at x,
                      std::size_t count, double scale) {
  T* to = on.at<T>(dx);
  const T* from = on.at<T>(x);
  for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<T>(2 * scale * from[i]);
}

}  // namespace user

#elif defined(RANKC_CUDA_KERNELS)

#include <rankc/runtime/cuda/rank.hpp>

namespace user {

template <class T>
void square_loss(const rankc::cuda::lane&, rankc::runtime::at loss, rankc::runtime::at x, std::size_t count,
                 double scale, bool accumulate);
template <class T>
void square_loss_grad(const rankc::cuda::lane&, rankc::runtime::at dx, rankc::runtime::at x,
                      std::size_t count, double scale);

#ifdef __CUDACC__
/// A single block, whose threads add up in a fixed order.
template <class T>
__global__ void square_loss_kernel(float* loss, const T* x, std::size_t count, float scale, bool accumulate) {
  __shared__ float part[256];
  float sum = 0;
  for (std::size_t i = threadIdx.x; i < count; i += 256)
    sum += static_cast<float>(x[i]) * static_cast<float>(x[i]);
  part[threadIdx.x] = sum;
  __syncthreads();
  for (unsigned half = 128; half > 0; half /= 2) {
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) *loss = (accumulate ? *loss : 0.0f) + scale * part[0];
}
template <class T>
__global__ void square_loss_grad_kernel(T* dx, const T* x, std::size_t count, float scale) {
  const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) dx[i] = static_cast<T>(2 * scale * static_cast<float>(x[i]));
}

template <class T>
void square_loss(const rankc::cuda::lane& on, rankc::runtime::at loss, rankc::runtime::at x,
                 std::size_t count, double scale, bool accumulate) {
  // clang-format off
  square_loss_kernel<<<1, 256, 0, on.stream>>>(on.at<float>(loss), on.at<T>(x), count,
                                                 static_cast<float>(scale), accumulate);
  // clang-format on
}
template <class T>
void square_loss_grad(const rankc::cuda::lane& on, rankc::runtime::at dx, rankc::runtime::at x,
                      std::size_t count, double scale) {
  const unsigned blocks = static_cast<unsigned>((count + 255) / 256);
  // clang-format off
  square_loss_grad_kernel<<<blocks, 256, 0, on.stream>>>(on.at<T>(dx), on.at<T>(x), count,
                                                           static_cast<float>(scale));
  // clang-format on
}
template decltype(square_loss<float>) square_loss<float>;
template decltype(square_loss<rankc::cuda::bf16>) square_loss<rankc::cuda::bf16>;
template decltype(square_loss_grad<float>) square_loss_grad<float>;
template decltype(square_loss_grad<rankc::cuda::bf16>) square_loss_grad<rankc::cuda::bf16>;
#endif

}  // namespace user

#else

#include <rankc/ops.hpp>

namespace user {

using namespace rankc;
using namespace rankc::ports;

inline constexpr op_row square_loss_grad_row{.name = "square_loss_grad",
                                             .ports = {out("dx", "tokens width"), in("x", "tokens width")},
                                             .rule = placement_rules::elementwise<false>,
                                             .kernel = "user::square_loss_grad",
                                             .sizes = "tokens*width number",
                                             .header = "square_loss.hpp"};
inline constexpr op_row square_loss_row{
    .name = "square_loss",
    .ports = {sum("loss", ""), in("x", "tokens width")},
    .rule =
        [](complaint& c, types in, type* out, const op&) {
          for (axis a : axes) {
            if (in[0][a] == P) c.found(a, "the value", in[0], "R, I or V", placement_rules::reduce_first);
            out[0][a] = in[0][a].k == placement::V ? P : in[0][a];
          }
        },
    .dual = [](backward& b) { b.give("x", b.apply(square_loss_grad_row, {b["x"]})); },
    .kernel = "user::square_loss",
    .sizes = "tokens*width number",
    .header = "square_loss.hpp"};

constexpr value square_loss(operand x, double scale) {
  return x.v.in->apply(square_loss_row, {x.v}, x.from, {.with = {.factor = scale}});
}

}  // namespace user

#endif
