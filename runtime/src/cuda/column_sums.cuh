// SPDX-License-Identifier: Apache-2.0
// Sums down the columns of (tokens, width), as the gradients of gains, shifts and biases need them: first
// partial sums of chunks of rows, then the sum of the partials, both in a fixed order.
#pragma once
#include "device.cuh"

namespace rankc::cuda {

/// A block sums one chunk of rows: some lanes of N columns each, and as many rows at a time as there are
/// threads.
inline constexpr int sum_threads = 256, fewest_rows = 16;

/// partial[o][chunk][c] = sum over the chunk's rows n of term(n, c), for each output o of the term.
/// Shapes: partial (outputs, chunks, width); grid (ceil(width / columns of a block), chunks), block (lanes,
/// rows).
template <int N, class Term>
__global__ void __launch_bounds__(sum_threads, Term::blocks_each)
    column_partials(float* partial, Term term, int tokens, int width, int rows_per_chunk) {
  constexpr int outputs = Term::outputs;
  __shared__ float shared[N * sum_threads];  // (N, rows, lanes)
  const int lanes = blockDim.x, rows = blockDim.y, lane = threadIdx.x, row = threadIdx.y;
  const int column = (blockIdx.x * lanes + lane) * N;
  const int begin = blockIdx.y * rows_per_chunk;
  const int end = begin + rows_per_chunk < tokens ? begin + rows_per_chunk : tokens;
  float sum[outputs][N] = {};
  if (column < width) {
#pragma unroll 4
    for (int n = begin + row; n < end; n += rows) term.template add<N>(sum, n, column);
  }
  for (int o = 0; o < outputs; ++o) {
    __syncthreads();
    for (int i = 0; i < N; ++i) shared[(i * rows + row) * lanes + lane] = sum[o][i];
    __syncthreads();
    if (row != 0 || column >= width) continue;
    for (int i = 0; i < N; ++i) {
      float total = 0.0f;
      for (int k = 0; k < rows; ++k) total += shared[(i * rows + k) * lanes + lane];
      partial[(std::size_t{gridDim.y} * o + blockIdx.y) * width + column + i] = total;
    }
  }
}

/// Lanes of a block for rows of `packs` packs: 32 or a few more, as leaves the fewest idle.
inline int sum_lanes(int packs) {
  int best = warp_size;
  for (int lanes = warp_size; lanes <= 2 * warp_size; lanes += 8)
    if (ceil_div(packs, lanes) * lanes < ceil_div(packs, best) * best) best = lanes;
  return best;
}

template <int Outputs>
struct sum_targets {
  float* out[Outputs];
};

/// out[o][c] = or += sum over chunks of partial[o][chunk][c].
/// Shapes: out (outputs)(width), partial (outputs, chunks, width); grid (ceil(width / 32), outputs), block
/// (32, 32).
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
  if constexpr (Outputs == 2) out = blockIdx.y == 0 ? to.out[0] : to.out[1];
  float total = accumulate ? out[c] : 0.0f;
  for (int part = 0; part < warp_size; ++part) total += shared[part][threadIdx.x];
  out[c] = total;
}

/// Launch sum_partials over what another kernel left in the workspace.
template <int Outputs>
void add_partials(rank& r, const char* name, const sum_targets<Outputs>& to, int chunks, int width,
                  bool accumulate) {
  launch(r, name, sum_partials<Outputs>, dim3(ceil_div(width, warp_size), Outputs),
         dim3(warp_size, warp_size), 0, to, reinterpret_cast<const float*>(r.workspace), chunks, width,
         accumulate);
}

/// Both stages. `packs` says that the term may read N columns at once.
template <int N, class Term>
void column_sums(rank& r, const char* name, const sum_targets<Term::outputs>& to, const Term& term,
                 int tokens, int width, bool packs, bool accumulate) {
  const int columns = packs ? width / N : width, lanes = sum_lanes(columns), tiles = ceil_div(columns, lanes);
  const int resident = Term::blocks_each * processors, most = tiles < resident ? resident / tiles : 1;
  int chunks = ceil_div(tokens, fewest_rows);
  if (chunks > most) chunks = most;
  const int rows_per_chunk = chunks == 0 ? 0 : ceil_div(tokens, chunks);
  float* partial = reinterpret_cast<float*>(r.workspace);
  const dim3 grid(tiles, chunks), block(lanes, sum_threads / lanes);
  if (packs)
    launch(r, name, column_partials<N, Term>, grid, block, 0, partial, term, tokens, width, rows_per_chunk);
  else
    launch(r, name, column_partials<1, Term>, grid, block, 0, partial, term, tokens, width, rows_per_chunk);
  add_partials<Term::outputs>(r, name, to, chunks, width, accumulate);
}

}  // namespace rankc::cuda
