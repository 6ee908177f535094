// SPDX-License-Identifier: Apache-2.0
#include "gelu_sums.hpp"

#include "../elementwise/activations.cuh"
#include "../device/column_sums.cuh"

namespace rankc::runtime::cuda {
namespace {

/// A row of dx, as the term of column sums. It also stores the row.
template <class T>
struct gelu_grad_term {
  static constexpr int outputs = 1, rows_at_once = 2;
  T* dx;
  const T *dy, *before;
  int width;
  template <int N>
  struct operands {
    pack<T, N> dy, before;
  };
  __device__ std::size_t place(int n, int c) const { return static_cast<std::size_t>(n) * width + c; }
  template <int N>
  __device__ operands<N> load_at(int n, int c) const {
    return {load<T, N>(dy + place(n, c)), load<T, N>(before + place(n, c))};
  }
  template <int N>
  __device__ void add(float (&sum)[1][N], const operands<N>& in, int n, int c) const {
    float d[N], x[N];
    unpack(d, in.dy);
    unpack(x, in.before);
    for (int i = 0; i < N; ++i) d[i] = gelu_grad_of<T>{}(d[i], x[i]);
    const pack<T, N> made = packed<T>(d);
    store(dx + place(n, c), made);
    for (int i = 0; i < N; ++i) sum[0][i] += to_float(made.element[i]);
  }
};

}  // namespace

template <class T>
void gelu_grad_bias(const lane& on, at dx, at db, at dy, at before, int tokens, int width, bool accumulate) {
  T* to = on.at<T>(dx);
  const T *d = on.at<T>(dy), *x = on.at<T>(before);
  column_sums<wide<T>>(on, "gelu_grad_bias", {{on.at<float>(db)}}, gelu_grad_term<T>{to, d, x, width}, tokens,
                       width, packable<wide<T>>(width, to, d, x), accumulate);
}

template void gelu_grad_bias<float>(const lane&, at, at, at, at, int, int, bool);
template void gelu_grad_bias<bf16>(const lane&, at, at, at, at, int, int, bool);

}  // namespace rankc::runtime::cuda
