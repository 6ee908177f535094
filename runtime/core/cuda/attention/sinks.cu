// SPDX-License-Identifier: Apache-2.0
// Attention sinks: scores that enter the softmax's denominator and have no value.
#include <rankc/runtime/cuda/kernels.hpp>

#include "attention_merge.cuh"

namespace rankc::runtime::cuda {
namespace {

template <class T>
__global__ void __launch_bounds__(block) sink_rows(T* scores, const T* sinks, std::size_t count, int heads) {
  const std::size_t i = std::size_t{blockIdx.x} * block + threadIdx.x;
  if (i < count) scores[i] = sinks[i % heads];
}

/// o = before * exp(lse - lse'), with lse' = log(exp(lse) + exp(score)). o may be `before`.
template <int N, class T>
__global__ void __launch_bounds__(block)
    outputs_with_sinks(T* o, const T* before, const float* lse_before, const T* scores, queries q) {
  const int width = q.heads * q.dim, packs = width / N;
  const std::size_t item = std::size_t{blockIdx.x} * block + threadIdx.x, token = item / packs;
  if (token >= q.some()) return;
  const int column = static_cast<int>(item % packs) * N, head = column / q.dim;
  const float sink = to_float(scores[token * q.heads + head]),
              share = 1.0f / (1.0f + expf(sink - lse_before[q.statistic(token, head)]));
  float x[N];
  unpack(x, load<T, N>(before + token * width + column));
  for (int n = 0; n < N; ++n) x[n] *= share;
  store(o + token * width + column, packed<T>(x));
}

/// lse = log(exp(before) + exp(score)). lse may be `before`.
template <class T>
__global__ void __launch_bounds__(block)
    sums_with_sinks(float* lse, const float* before, const T* scores, queries q) {
  const std::size_t item = std::size_t{blockIdx.x} * block + threadIdx.x, token = item / q.heads;
  if (token >= q.some()) return;
  const std::size_t at = q.statistic(token, static_cast<int>(item % q.heads));
  const float a = before[at], b = to_float(scores[item]), top = fmaxf(a, b);
  lse[at] = top + log1pf(expf(fminf(a, b) - top));
}

/// dscores = -exp(score - lse) * (dout . o). One warp for each query and head.
template <class T>
__global__ void __launch_bounds__(block)
    sink_gradients(T* dscores, const T* dout, const T* o, const float* lse, const T* scores, queries q) {
  const std::size_t item = (std::size_t{blockIdx.x} * block + threadIdx.x) / warp_size,
                    token = item / q.heads, at = item * q.dim;
  if (token >= q.some()) return;
  const int lane = threadIdx.x % warp_size;
  float sum = 0.0f;
  for (int d = lane; d < q.dim; d += warp_size) sum += to_float(dout[at + d]) * to_float(o[at + d]);
  sum = warp_sum(sum);
  if (lane > 0) return;
  const float weight =
      expf(to_float(scores[item]) - lse[q.statistic(token, static_cast<int>(item % q.heads))]);
  dscores[item] = from_float<T>(-weight * sum);
}

}  // namespace

template <class T>
void sink_scores(const lane& on, at scores, at, at sinks, int tokens, int heads, int) {
  const std::size_t count = static_cast<std::size_t>(tokens) * heads;
  launch(on, "sink_scores", sink_rows<T>, ceil_div(count, block), block, 0, on.at<T>(scores), on.at<T>(sinks),
         count, heads);
}

template <class T>
void add_sinks(const lane& on, at o, at lse, at o_before, at lse_before, at scores, int rows, int tokens,
               int heads, int dim) {
  constexpr int n = wide<T>;
  const queries q{rows, tokens / rows, 0, heads, dim};
  const auto run = [&](auto* kernel, int each) {
    launch(on, "add_sinks", kernel, ceil_div(q.some() * heads * dim, block * each), block, 0, on.at<T>(o),
           on.at<T>(o_before), on.at<float>(lse_before), on.at<T>(scores), q);
  };
  dim % n == 0 ? run(outputs_with_sinks<n, T>, n) : run(outputs_with_sinks<1, T>, 1);
  launch(on, "add_sinks", sums_with_sinks<T>, ceil_div(q.some() * heads, block), block, 0, on.at<float>(lse),
         on.at<float>(lse_before), on.at<T>(scores), q);
}

template <class T>
void add_sinks_grad(const lane& on, at dscores, at dout, at o, at lse, at scores, int rows, int tokens,
                    int heads, int dim) {
  const queries q{rows, tokens / rows, 0, heads, dim};
  launch(on, "add_sinks_grad", sink_gradients<T>, ceil_div(q.some() * heads * warp_size, block), block, 0,
         on.at<T>(dscores), on.at<T>(dout), on.at<T>(o), on.at<float>(lse), on.at<T>(scores), q);
}

template void sink_scores<float>(const lane&, at, at, at, int, int, int);
template void sink_scores<bf16>(const lane&, at, at, at, int, int, int);
template void add_sinks<float>(const lane&, at, at, at, at, at, int, int, int, int);
template void add_sinks<bf16>(const lane&, at, at, at, at, at, int, int, int, int);
template void add_sinks_grad<float>(const lane&, at, at, at, at, at, int, int, int, int);
template void add_sinks_grad<bf16>(const lane&, at, at, at, at, at, int, int, int, int);

}  // namespace rankc::runtime::cuda
