// SPDX-License-Identifier: Apache-2.0
// Element by element: GELU, add, the working copy, clear.
#include <rankc/runtime/cuda/kernels.hpp>

#include "elementwise.cuh"

namespace rankc::cuda {
namespace {

/// tanh form: gelu(x) = x / 2 (1 + tanh(u)) = x sigmoid(2 u), with 2 u = 2 sqrt(2 / pi) (x + 0.044715 x^3).
constexpr float twice_root = 2 * 0.7978845608028654f, cubic = 0.044715f;

template <class T>
struct gelu_of {
  __device__ float operator()(float x) const { return x * sigmoid<T>(twice_root * (x + cubic * x * x * x)); }
};
template <class T>
struct gelu_grad_of {
  __device__ float operator()(float dy, float x) const {
    const float s = sigmoid<T>(twice_root * (x + cubic * x * x * x));
    return dy * (s + x * s * (1.0f - s) * twice_root * (1.0f + 3.0f * cubic * x * x));
  }
};
struct sum_of {
  __device__ float operator()(float a, float b) const { return a + b; }
};
struct as_it_is {
  __device__ float operator()(float x) const { return x; }
};

}  // namespace

template <class T>
void gelu(rank& r, at y, at x, std::size_t count) {
  run1(r, "gelu", r.at<T>(y), r.at<T>(x), count, gelu_of<T>{});
}

template <class T>
void gelu_grad(rank& r, at dx, at dy, at x, std::size_t count) {
  run2(r, "gelu_grad", r.at<T>(dx), r.at<T>(dy), r.at<T>(x), count, gelu_grad_of<T>{});
}

template <class T>
void add(rank& r, at y, at a, at b, std::size_t count) {
  run2(r, "add", r.at<T>(y), r.at<T>(a), r.at<T>(b), count, sum_of{});
}

void working_copy(rank& r, at copy, at master, std::size_t count) {
  run1(r, "working_copy", r.at<bf16>(copy), r.at<float>(master), count, as_it_is{});
}

template <class T>
void clear(rank& r, at out, std::size_t count) {
  check(r, cudaMemsetAsync(r.at<T>(out), 0, count * sizeof(T), r.on(stream::compute)), "clear");
}

template <class T>
void copy(rank& r, at y, at x, std::size_t count) {
  check(r, cudaMemcpyAsync(r.at<T>(y), r.at<T>(x), count * sizeof(T), cudaMemcpyDeviceToDevice, r.on(stream::compute)), "copy");
}

template void gelu<float>(rank&, at, at, std::size_t);
template void gelu<bf16>(rank&, at, at, std::size_t);
template void gelu_grad<float>(rank&, at, at, at, std::size_t);
template void gelu_grad<bf16>(rank&, at, at, at, std::size_t);
template void add<float>(rank&, at, at, at, std::size_t);
template void add<bf16>(rank&, at, at, at, std::size_t);
template void clear<float>(rank&, at, std::size_t);
template void clear<bf16>(rank&, at, std::size_t);
template void copy<float>(rank&, at, at, std::size_t);
template void copy<bf16>(rank&, at, at, std::size_t);

}  // namespace rankc::cuda
