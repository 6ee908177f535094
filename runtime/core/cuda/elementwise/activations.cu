// SPDX-License-Identifier: Apache-2.0
// Elementwise kernels: GELU, add, the working copy, clear.
#include <rankc/runtime/call_recorder.hpp>
#include <rankc/runtime/cuda/kernels.hpp>

#include "activations.cuh"
#include "../device/elementwise.cuh"

namespace rankc::runtime::cuda {
namespace {

struct sum_of {
  __device__ float operator()(float a, float b) const { return a + b; }
};
struct as_it_is {
  __device__ float operator()(float x) const { return x; }
};

}  // namespace

template <class T>
void gelu(const lane& on, at y, at x, std::size_t count) {
  run1(on, "gelu", on.at<T>(y), on.at<T>(x), count, gelu_of<T>{});
}

template <class T>
void gelu_grad(const lane& on, at dx, at dy, at x, std::size_t count) {
  run2(on, "gelu_grad", on.at<T>(dx), on.at<T>(dy), on.at<T>(x), count, gelu_grad_of<T>{});
}

template <class T>
void add(const lane& on, at y, at a, at b, std::size_t count) {
  run2(on, "add", on.at<T>(y), on.at<T>(a), on.at<T>(b), count, sum_of{});
}

void working_copy(const lane& on, at copy, at master, std::size_t count) {
  run1(on, "working_copy", on.at<bf16>(copy), on.at<float>(master), count, as_it_is{});
}

template <class T>
void clear(const lane& on, at out, std::size_t count) {
  if (call_recorder* const to = recorder_of(on)) return to->clear(on.index, out, count * sizeof(T));
  check(on, cudaMemsetAsync(on.at<T>(out), 0, count * sizeof(T), on.stream), "clear");
}

template <class T>
void copy(const lane& on, at y, at x, std::size_t count) {
  check(on, cudaMemcpyAsync(on.at<T>(y), on.at<T>(x), count * sizeof(T), cudaMemcpyDeviceToDevice, on.stream),
        "copy");
}

template void gelu<float>(const lane&, at, at, std::size_t);
template void gelu<bf16>(const lane&, at, at, std::size_t);
template void gelu_grad<float>(const lane&, at, at, at, std::size_t);
template void gelu_grad<bf16>(const lane&, at, at, at, std::size_t);
template void add<float>(const lane&, at, at, at, std::size_t);
template void add<bf16>(const lane&, at, at, at, std::size_t);
template void clear<float>(const lane&, at, std::size_t);
template void clear<bf16>(const lane&, at, std::size_t);
template void copy<float>(const lane&, at, at, std::size_t);
template void copy<bf16>(const lane&, at, at, std::size_t);

}  // namespace rankc::runtime::cuda
