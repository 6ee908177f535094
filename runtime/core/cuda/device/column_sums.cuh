// SPDX-License-Identifier: Apache-2.0
// Column sums of (tokens, width), for the gradients of gains, shifts and biases. They add up chunks of rows
// first, then the partial sums, both in a fixed order.
#pragma once
#include "device.cuh"

namespace rankc::runtime::cuda {

/// A block sums one chunk of rows: 32 lanes of N columns, 8 rows at a time.
inline constexpr int sum_rows = 8, fewest_rows = 2 * sum_rows;
inline constexpr int blocks_each = 4, sum_blocks = blocks_each * processors;  // all resident at once

/// partial[o][chunk][c] = sum over the chunk's rows n of term(n, c), for each output o of the term. The term
/// defines for how many rows a thread loads the operands at once.
/// Shapes: partial (outputs, chunks, width); grid (ceil(width / columns of a block), chunks), block (32, 8).
template <int N, class Term>
__global__ void __launch_bounds__(warp_size* sum_rows, blocks_each)
    column_partials(float* partial, Term term, int tokens, int width, int rows_per_chunk) {
  constexpr int outputs = Term::outputs, at_once = Term::rows_at_once;
  __shared__ float shared[sum_rows][N][warp_size];
  const int column = (blockIdx.x * warp_size + threadIdx.x) * N;
  const int begin = blockIdx.y * rows_per_chunk;
  const int end = begin + rows_per_chunk < tokens ? begin + rows_per_chunk : tokens;
  float sum[outputs][N] = {};
  for (int first = begin + static_cast<int>(threadIdx.y); column < width && first < end;
       first += at_once * sum_rows) {
    typename Term::template operands<N> in[at_once];
#pragma unroll
    for (int k = 0; k < at_once; ++k)
      if (const int n = first + k * sum_rows; n < end) in[k] = term.template load_at<N>(n, column);
#pragma unroll
    for (int k = 0; k < at_once; ++k)
      if (const int n = first + k * sum_rows; n < end) term.add(sum, in[k], n, column);
  }
  for (int o = 0; o < outputs; ++o) {
    __syncthreads();
    for (int i = 0; i < N; ++i) shared[threadIdx.y][i][threadIdx.x] = sum[o][i];
    __syncthreads();
    if (threadIdx.y != 0 || column >= width) continue;
    for (int i = 0; i < N; ++i) {
      float total = 0.0f;
      for (int row = 0; row < sum_rows; ++row) total += shared[row][i][threadIdx.x];
      partial[(std::size_t{gridDim.y} * o + blockIdx.y) * width + column + i] = total;
    }
  }
}

template <int Outputs>
struct sum_targets {
  float* out[Outputs];
};

/// out[o][c] = or += sum over chunks of partial[o][chunk][c]. A block has 32 columns.
/// Shapes: out (width) each, partial (outputs, chunks, width).
template <int Outputs>
__global__ void __launch_bounds__(warp_size* warp_size)
    sum_partials(sum_targets<Outputs> to, const float* partial, int chunks, int width, bool accumulate) {
  __shared__ float shared[warp_size][warp_size + 1];
  const int c = blockIdx.x * warp_size + threadIdx.x;
  partial += std::size_t{blockIdx.y} * chunks * width;
  float sum = 0.0f;
  if (c < width) {
#pragma unroll 4
    for (int chunk = threadIdx.y; chunk < chunks; chunk += warp_size)
      sum += partial[static_cast<std::size_t>(chunk) * width + c];
  }
  shared[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || c >= width) return;
  float* out = to.out[0];
  for (int o = 1; o < Outputs; ++o)
    if (blockIdx.y == o) out = to.out[o];
  float total = accumulate ? out[c] : 0.0f;
  for (int part = 0; part < warp_size; ++part) total += shared[part][threadIdx.x];
  out[c] = total;
}

/// Launches sum_partials over the partial sums that another kernel has left in the workspace.
template <int Outputs>
void add_partials(const lane& on, const char* name, const sum_targets<Outputs>& to, int chunks, int width,
                  bool accumulate) {
  launch(on, name, sum_partials<Outputs>, dim3(ceil_div(width, warp_size), Outputs),
         dim3(warp_size, warp_size), 0, to, reinterpret_cast<const float*>(on.workspace), chunks, width,
         accumulate);
}

/// Runs both stages. `packs`: the term may read N columns at once.
template <int N, class Term>
void column_sums(const lane& on, const char* name, const sum_targets<Term::outputs>& to, const Term& term,
                 int tokens, int width, bool packs, bool accumulate) {
  const int tiles = ceil_div(width, packs ? warp_size * N : warp_size);
  const int most = tiles < sum_blocks ? sum_blocks / tiles : 1;
  int chunks = ceil_div(tokens, fewest_rows);
  if (chunks > most) chunks = most;
  const int rows_per_chunk = chunks == 0 ? 0 : ceil_div(tokens, chunks);
  float* partial = reinterpret_cast<float*>(on.workspace);
  const dim3 grid(tiles, chunks), block(warp_size, sum_rows);
  if (packs)
    launch(on, name, column_partials<N, Term>, grid, block, 0, partial, term, tokens, width, rows_per_chunk);
  else
    launch(on, name, column_partials<1, Term>, grid, block, 0, partial, term, tokens, width, rows_per_chunk);
  add_partials<Term::outputs>(on, name, to, chunks, width, accumulate);
}

}  // namespace rankc::runtime::cuda
