// SPDX-License-Identifier: Apache-2.0
// Bias and learned positions: a table row is added to every token. A bias is a table of one row, so one
// kernel computes both.
#include <rankc/runtime/cuda/kernels.hpp>

#include "../device/column_sums.cuh"
#include "../device/documents.cuh"
#include "../device/row_groups.cuh"

namespace rankc::runtime::cuda {
namespace {

/// The table row that each token reads. `rows_again`: token n reads row (first + n) % rows. `rows_of_chunks`:
/// a token reads the row of its position in the sequence, of which the rank has chunks.
struct rows_again {
  int rows, first;
  __device__ int row_of(int n) const {
    return static_cast<int>((static_cast<unsigned>(first) + static_cast<unsigned>(n)) % rows);
  }
  /// The first token that reads a row of the table.
  __device__ int first_of(int row) const { return ((row - first) % rows + rows) % rows; }
  /// The distance from one token that reads a row to the next.
  __device__ int step() const { return rows; }
};
struct rows_of_chunks {
  runtime::chunks has;
  int first;
  __device__ int row_of(int n) const { return has.position((first + n) % has.count()); }
  __device__ int first_of(int row) const {
    const int place = has.place(row), count = has.count();
    return place < 0 ? 0x7fffffff : ((place - first) % count + count) % count;
  }
  __device__ int step() const { return has.count(); }
};

/// y[n] = (residual[n] +) x[n] + table[by.row_of(n)]; `residual` may be null.
/// Shapes: x, y, residual (tokens, width), table (rows, width). y may be x or residual.
template <bool Residual, int N, class T, class Rows>
__global__ void __launch_bounds__(row_group_threads)
    add_rows(T* y, const T* x, const T* table, const T* residual, int tokens, int width, Rows by) {
  const row_group<N, 1> part(width);
  if (part.token >= tokens) return;
  const std::size_t place = part.token * width + part.column;
  const std::size_t row = static_cast<std::size_t>(by.row_of(static_cast<int>(part.token)));
  const auto in = load<T, N>(x + place), of_row = load<T, N>(table + row * width + part.column);
  float sum[N], other[N];
  unpack(sum, in);
  unpack(other, of_row);
  for (int i = 0; i < N; ++i) sum[i] += other[i];
  if constexpr (Residual) {
    unpack(other, load<T, N>(residual + place));
    for (int i = 0; i < N; ++i) sum[i] += other[i];
  }
  store(y + place, packed<T>(sum));
}

/// dtable[p] = or += sum of dy[n] over the tokens n at position p, in token order.
/// Shapes: dtable f32 (seq, width), dy (tokens, width); a thread has N columns of one position.
template <int N, class T, class Rows>
__global__ void __launch_bounds__(row_group_threads)
    position_sums(float* dtable, const T* dy, int tokens, int width, int seq, Rows by, bool accumulate) {
  const row_group<N, 1> part(width);
  const int p = static_cast<int>(part.token);
  if (p >= seq) return;
  constexpr int n_out = N < 4 ? N : 4;  // columns of the f32 table loaded at once
  float* out = dtable + part.token * width + part.column;
  float total[N] = {};
  if (accumulate)
    for (int i = 0; i < N; i += n_out) {
      const auto old = load<float, n_out>(out + i);
      for (int j = 0; j < n_out; ++j) total[i + j] = old.element[j];
    }
#pragma unroll 8
  for (int n = by.first_of(p); n < tokens; n += by.step()) {
    float d[N];
    unpack(d, load<T, N>(dy + static_cast<std::size_t>(n) * width + part.column));
    for (int i = 0; i < N; ++i) total[i] += d[i];
  }
  for (int i = 0; i < N; i += n_out) {
    pack<float, n_out> made;
    for (int j = 0; j < n_out; ++j) made.element[j] = total[i + j];
    store(out + i, made);
  }
}

template <bool Residual, class T, class Rows>
void run_add_rows(const lane& on, const char* name, at y, at x, at table, const T* residual, int tokens,
                  int width, const Rows& by) {
  T *to = on.at<T>(y), *from = on.at<T>(x), *row = on.at<T>(table);
  constexpr int n = wide<T>;
  if (packable<n>(width, to, from, row, residual))
    launch(on, name, add_rows<Residual, n, T, Rows>, row_group_blocks<n, 1>(tokens, width), row_group_threads,
           0, to, from, row, residual, tokens, width, by);
  else
    launch(on, name, add_rows<Residual, 1, T, Rows>, row_group_blocks<1, 1>(tokens, width), row_group_threads,
           0, to, from, row, residual, tokens, width, by);
}

template <class T, class Rows>
void run_position_sums(const lane& on, const char* name, at dtable, at dy, int tokens, int width, int seq,
                       const Rows& by, bool accumulate) {
  const T* d = on.at<T>(dy);
  float* to = on.at<float>(dtable);
  constexpr int n = wide<T>;
  if (packable<n>(width, d) && packable<4>(width, to))
    launch(on, name, position_sums<n, T, Rows>, row_group_blocks<n, 1>(seq, width), row_group_threads, 0, to,
           d, tokens, width, seq, by, accumulate);
  else
    launch(on, name, position_sums<1, T, Rows>, row_group_blocks<1, 1>(seq, width), row_group_threads, 0, to,
           d, tokens, width, seq, by, accumulate);
}

/// dy, as the term of column sums.
template <class T>
struct dy_term {
  static constexpr int outputs = 1, rows_at_once = 4;
  const T* dy;
  int width;
  template <int N>
  using operands = pack<T, N>;
  template <int N>
  __device__ operands<N> load_at(int n, int c) const {
    return load<T, N>(dy + static_cast<std::size_t>(n) * width + c);
  }
  template <int N>
  __device__ void add(float (&sum)[1][N], const operands<N>& d, int, int) const {
    for (int i = 0; i < N; ++i) sum[0][i] += to_float(d.element[i]);
  }
};

}  // namespace

template <class T>
void bias(const lane& on, at y, at x, at b, int tokens, int width) {
  run_add_rows<false, T>(on, "bias", y, x, b, nullptr, tokens, width, rows_again{1, 0});
}

template <class T>
void bias_add(const lane& on, at y, at x, at b, at residual, int tokens, int width) {
  run_add_rows<true, T>(on, "bias_add", y, x, b, on.at<T>(residual), tokens, width, rows_again{1, 0});
}

template <class T>
void bias_grad(const lane& on, at db, at dy, int tokens, int width, bool accumulate) {
  const T* d = on.at<T>(dy);
  column_sums<wide<T>>(on, "bias_grad", {{on.at<float>(db)}}, dy_term<T>{d, width}, tokens, width,
                       packable<wide<T>>(width, d), accumulate);
}

template <class T>
void position(const lane& on, at y, at x, at table, int tokens, int width, int seq, int first) {
  run_add_rows<false, T>(on, "position", y, x, table, nullptr, tokens, width, rows_again{seq, first});
}

template <class T>
void position_grad(const lane& on, at dtable, at dy, int tokens, int width, int seq, int first,
                   bool accumulate) {
  run_position_sums<T>(on, "position_grad", dtable, dy, tokens, width, seq, rows_again{seq, first},
                       accumulate);
}

template <class T>
void chunk_position(const lane& on, at y, at x, at table, int tokens, int width, int rows, int seq, int ranks,
                    int first) {
  run_add_rows<false, T>(on, "chunk_position", y, x, table, nullptr, tokens, width,
                         rows_of_chunks{{seq, ranks, first / (rows * (seq / ranks))}, first});
}

template <class T>
void chunk_position_grad(const lane& on, at dtable, at dy, int tokens, int width, int rows, int seq,
                         int ranks, int first, bool accumulate) {
  run_position_sums<T>(on, "chunk_position_grad", dtable, dy, tokens, width, seq,
                       rows_of_chunks{{seq, ranks, first / (rows * (seq / ranks))}, first}, accumulate);
}

template <class T>
void document_position(const lane& on, at y, at x, at table, at starts, int tokens, int width, int seq,
                       int first) {
  run_add_rows<false, T>(on, "document_position", y, x, table, nullptr, tokens, width,
                         rows_in_documents{on.at<std::int32_t>(starts), {seq}, first});
}

template <class T>
void document_chunk_position(const lane& on, at y, at x, at table, at starts, int tokens, int width, int rows,
                             int seq, int ranks, int first) {
  const runtime::chunks has{seq, ranks, first / (rows * (seq / ranks))};
  run_add_rows<false, T>(on, "document_chunk_position", y, x, table, nullptr, tokens, width,
                         rows_in_documents::of(on.at<std::int32_t>(starts), has, rows, first));
}

template void bias<float>(const lane&, at, at, at, int, int);
template void bias<bf16>(const lane&, at, at, at, int, int);
template void bias_add<float>(const lane&, at, at, at, at, int, int);
template void bias_add<bf16>(const lane&, at, at, at, at, int, int);
template void bias_grad<float>(const lane&, at, at, int, int, bool);
template void bias_grad<bf16>(const lane&, at, at, int, int, bool);
template void position<float>(const lane&, at, at, at, int, int, int, int);
template void position<bf16>(const lane&, at, at, at, int, int, int, int);
template void position_grad<float>(const lane&, at, at, int, int, int, int, bool);
template void position_grad<bf16>(const lane&, at, at, int, int, int, int, bool);
template void chunk_position<float>(const lane&, at, at, at, int, int, int, int, int, int);
template void chunk_position<bf16>(const lane&, at, at, at, int, int, int, int, int, int);
template void chunk_position_grad<float>(const lane&, at, at, int, int, int, int, int, int, bool);
template void chunk_position_grad<bf16>(const lane&, at, at, int, int, int, int, int, int, bool);
template void document_position<float>(const lane&, at, at, at, at, int, int, int, int);
template void document_position<bf16>(const lane&, at, at, at, at, int, int, int, int);
template void document_chunk_position<float>(const lane&, at, at, at, at, int, int, int, int, int, int);
template void document_chunk_position<bf16>(const lane&, at, at, at, at, int, int, int, int, int, int);

}  // namespace rankc::runtime::cuda
