// SPDX-License-Identifier: Apache-2.0
// A row added to every token, and learned positions: a table whose rows repeat. Forward is one kernel, for a
// bias is a table of one row.
#include <rankc/runtime/cuda/kernels.hpp>

#include "column_sums.cuh"

namespace rankc::cuda {
namespace {

/// y[n] = x[n] + table[(first + n) % rows].
/// Shapes: x, y (tokens, width), table (rows, width); a block per token. y may be x.
template <int N, class T>
__global__ void add_rows(T* y, const T* x, const T* table, int width, int rows, int first) {
  const std::size_t token = blockIdx.x;
  y += token * width;
  x += token * width;
  table += (first + token) % rows * width;
  for (int c = threadIdx.x * N; c < width; c += blockDim.x * N) {
    const auto a = load<T, N>(x + c);
    const auto b = load<T, N>(table + c);
    pack<T, N> sum;
    for (int i = 0; i < N; ++i)
      sum.element[i] = from_float<T>(to_float(a.element[i]) + to_float(b.element[i]));
    store(y + c, sum);
  }
}

/// dtable[p] = or += sum of dy[n] over the tokens n at position p, in token order.
/// Shapes: dtable f32 (seq, width), dy (tokens, width); grid (seq, ceil(width / block)).
template <class T>
__global__ void position_sums(float* dtable, const T* dy, int tokens, int width, int seq, int first,
                              bool accumulate) {
  const int c = blockIdx.y * blockDim.x + threadIdx.x;
  if (c >= width) return;
  const int p = blockIdx.x;
  float* out = dtable + std::size_t{blockIdx.x} * width + c;
  float total = accumulate ? *out : 0.0f;
  for (int n = ((p - first) % seq + seq) % seq; n < tokens; n += seq)
    total += to_float(dy[static_cast<std::size_t>(n) * width + c]);
  *out = total;
}

template <class T>
void run_add_rows(rank& r, const char* name, at y, at x, at table, int tokens, int width, int rows,
                  int first) {
  T *to = r.at<T>(y), *from = r.at<T>(x), *row = r.at<T>(table);
  constexpr int n = wide<T>;
  if (packable<n>(width, to, from, row))
    launch(r, name, add_rows<n, T>, tokens, row_threads(width / n), 0, to, from, row, width, rows, first);
  else launch(r, name, add_rows<1, T>, tokens, row_threads(width), 0, to, from, row, width, rows, first);
}

/// dy itself, for its column sums.
template <class T>
struct dy_term {
  static constexpr int outputs = 1;
  const T* dy;
  int width;
  template <int N>
  __device__ void add(float (&sum)[1][N], int n, int c) const {
    const auto d = load<T, N>(dy + static_cast<std::size_t>(n) * width + c);
    for (int i = 0; i < N; ++i) sum[0][i] += to_float(d.element[i]);
  }
};

}  // namespace

template <class T>
void bias(rank& r, at y, at x, at b, int tokens, int width) {
  run_add_rows<T>(r, "bias", y, x, b, tokens, width, 1, 0);
}

template <class T>
void bias_grad(rank& r, at db, at dy, int tokens, int width, bool accumulate) {
  const T* d = r.at<T>(dy);
  column_sums(r, "bias_grad", {r.at<float>(db)}, dy_term<T>{d, width}, tokens, width, packable<4>(width, d),
              accumulate);
}

template <class T>
void position(rank& r, at y, at x, at table, int tokens, int width, int seq, int first) {
  run_add_rows<T>(r, "position", y, x, table, tokens, width, seq, first);
}

template <class T>
void position_grad(rank& r, at dtable, at dy, int tokens, int width, int seq, int first, bool accumulate) {
  const unsigned threads = row_threads(width);
  launch(r, "position_grad", position_sums<T>, dim3(seq, ceil_div(width, threads)), threads, 0,
         r.at<float>(dtable), r.at<T>(dy), tokens, width, seq, first, accumulate);
}

template void bias<float>(rank&, at, at, at, int, int);
template void bias<bf16>(rank&, at, at, at, int, int);
template void bias_grad<float>(rank&, at, at, int, int, bool);
template void bias_grad<bf16>(rank&, at, at, int, int, bool);
template void position<float>(rank&, at, at, at, int, int, int, int);
template void position<bf16>(rank&, at, at, at, int, int, int, int);
template void position_grad<float>(rank&, at, at, int, int, int, int, bool);
template void position_grad<bf16>(rank&, at, at, int, int, int, int, bool);

}  // namespace rankc::cuda
