// SPDX-License-Identifier: Apache-2.0
// What gates are made of: products, multiples, the sigmoid.
#include <rankc/runtime/cuda/kernels.hpp>

#include "elementwise.cuh"

namespace rankc::cuda {
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
void mul(rank& r, at y, at a, at b, std::size_t count) {
  run2(r, "mul", r.at<T>(y), r.at<T>(a), r.at<T>(b), count, product_of{});
}

template <class T>
void mul_grad(rank& r, at da, at db, at dy, at a, at b, std::size_t count) {
  T *to_a = r.at<T>(da), *to_b = r.at<T>(db), *d = r.at<T>(dy), *left = r.at<T>(a), *right = r.at<T>(b);
  constexpr int n = wide<T>;
  if (packable<n>(count, to_a, to_b, d, left, right))
    launch(r, "mul_grad", product_backward<n, T>, ceil_div(count, map_block * n), map_block, 0, to_a, to_b, d, left,
           right, count);
  else
    launch(r, "mul_grad", product_backward<1, T>, ceil_div(count, map_block), map_block, 0, to_a, to_b, d, left, right,
           count);
}

template <class T>
void scale(rank& r, at y, at x, std::size_t count, double factor) {
  run1(r, "scale", r.at<T>(y), r.at<T>(x), count, multiple_of{static_cast<float>(factor)});
}

template <class T>
void sigmoid(rank& r, at y, at x, std::size_t count) {
  run1(r, "sigmoid", r.at<T>(y), r.at<T>(x), count, sigmoid_of<T>{});
}

template <class T>
void sigmoid_grad(rank& r, at dx, at dy, at y, std::size_t count) {
  run2(r, "sigmoid_grad", r.at<T>(dx), r.at<T>(dy), r.at<T>(y), count, sigmoid_grad_of{});
}

template void mul<float>(rank&, at, at, at, std::size_t);
template void mul<bf16>(rank&, at, at, at, std::size_t);
template void mul_grad<float>(rank&, at, at, at, at, at, std::size_t);
template void mul_grad<bf16>(rank&, at, at, at, at, at, std::size_t);
template void scale<float>(rank&, at, at, std::size_t, double);
template void scale<bf16>(rank&, at, at, std::size_t, double);
template void sigmoid<float>(rank&, at, at, std::size_t);
template void sigmoid<bf16>(rank&, at, at, std::size_t);
template void sigmoid_grad<float>(rank&, at, at, at, std::size_t);
template void sigmoid_grad<bf16>(rank&, at, at, at, std::size_t);

}  // namespace rankc::cuda
