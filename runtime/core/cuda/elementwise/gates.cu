// SPDX-License-Identifier: Apache-2.0
// The kernels of gates: products, multiples, the sigmoid.
#include <rankc/runtime/cuda/kernels.hpp>

#include "../device/elementwise.cuh"

namespace rankc::runtime::cuda {
namespace {

struct product_of {
  __device__ float operator()(float a, float b) const { return a * b; }
};
struct multiple_of {
  float factor;
  __device__ float operator()(float x) const { return factor * x; }
};
template <class T>
struct sigmoid_of {
  __device__ float operator()(float x) const { return sigmoid<T>(x); }
};
struct sigmoid_grad_of {
  __device__ float operator()(float dy, float y) const { return dy * y * (1.0f - y); }
};

/// da[i] = dy[i] b[i], db[i] = dy[i] a[i]; all (count). da and db may be any two inputs.
template <int N, class T>
__global__ void product_backward(T* da, T* db, const T* dy, const T* a, const T* b, std::size_t count) {
  const std::size_t first = (std::size_t{blockIdx.x} * map_block + threadIdx.x) * N;
  if (first >= count) return;
  float d[N], left[N], right[N];
  unpack(d, load<T, N>(dy + first));
  unpack(left, load<T, N>(a + first));
  unpack(right, load<T, N>(b + first));
  for (int n = 0; n < N; ++n) {
    right[n] *= d[n];
    left[n] *= d[n];
  }
  store(da + first, packed<T>(right));
  store(db + first, packed<T>(left));
}

}  // namespace

template <class T>
void mul(const lane& on, at y, at a, at b, std::size_t count) {
  run2(on, "mul", on.at<T>(y), on.at<T>(a), on.at<T>(b), count, product_of{});
}

template <class T>
void mul_grad(const lane& on, at da, at db, at dy, at a, at b, std::size_t count) {
  T *to_a = on.at<T>(da), *to_b = on.at<T>(db), *d = on.at<T>(dy), *left = on.at<T>(a), *right = on.at<T>(b);
  constexpr int n = wide<T>;
  if (packable<n>(count, to_a, to_b, d, left, right))
    launch(on, "mul_grad", product_backward<n, T>, ceil_div(count, map_block * n), map_block, 0, to_a, to_b,
           d, left, right, count);
  else
    launch(on, "mul_grad", product_backward<1, T>, ceil_div(count, map_block), map_block, 0, to_a, to_b, d,
           left, right, count);
}

template <class T>
void scale(const lane& on, at y, at x, std::size_t count, double factor) {
  run1(on, "scale", on.at<T>(y), on.at<T>(x), count, multiple_of{static_cast<float>(factor)});
}

template <class T>
void sigmoid(const lane& on, at y, at x, std::size_t count) {
  run1(on, "sigmoid", on.at<T>(y), on.at<T>(x), count, sigmoid_of<T>{});
}

template <class T>
void sigmoid_grad(const lane& on, at dx, at dy, at y, std::size_t count) {
  run2(on, "sigmoid_grad", on.at<T>(dx), on.at<T>(dy), on.at<T>(y), count, sigmoid_grad_of{});
}

template void mul<float>(const lane&, at, at, at, std::size_t);
template void mul<bf16>(const lane&, at, at, at, std::size_t);
template void mul_grad<float>(const lane&, at, at, at, at, at, std::size_t);
template void mul_grad<bf16>(const lane&, at, at, at, at, at, std::size_t);
template void scale<float>(const lane&, at, at, std::size_t, double);
template void scale<bf16>(const lane&, at, at, std::size_t, double);
template void sigmoid<float>(const lane&, at, at, std::size_t);
template void sigmoid<bf16>(const lane&, at, at, std::size_t);
template void sigmoid_grad<float>(const lane&, at, at, at, std::size_t);
template void sigmoid_grad<bf16>(const lane&, at, at, at, std::size_t);

}  // namespace rankc::runtime::cuda
