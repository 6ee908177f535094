// SPDX-License-Identifier: Apache-2.0
// Sums down the columns of (tokens, width), as the gradients of gains, shifts and biases need them: first
// partial sums of a few chunks of rows, then the sum of the partials, both in a fixed order.
#pragma once
#include "device.cuh"

namespace rankc::cuda {

/// A block sums 128 columns of one chunk of rows: 32 lanes of N columns, 8 rows at a time.
inline constexpr int sum_columns = 128, sum_rows = 8, most_chunks = 64;

/// partial[o][chunk][c] = sum over the chunk's rows n of term(n, c), for each output o of the term.
/// Shapes: partial (outputs, chunks, width); grid (ceil(width / columns of a block), chunks), block (32, 8).
template <int N, class Term>
__global__ void column_partials(float* partial, Term term, int tokens, int width, int rows_per_chunk) {
  constexpr int outputs = Term::outputs;
  __shared__ float shared[sum_rows][warp_size * N];
  const int column = (blockIdx.x * warp_size + threadIdx.x) * N;
  const int begin = blockIdx.y * rows_per_chunk;
  const int end = begin + rows_per_chunk < tokens ? begin + rows_per_chunk : tokens;
  float sum[outputs][N] = {};
  if (column < width)
    for (int n = begin + static_cast<int>(threadIdx.y); n < end; n += sum_rows)
      term.template add<N>(sum, n, column);
  for (int o = 0; o < outputs; ++o) {
    __syncthreads();
    for (int i = 0; i < N; ++i) shared[threadIdx.y][threadIdx.x * N + i] = sum[o][i];
    __syncthreads();
    if (threadIdx.y != 0 || column >= width) continue;
    for (int i = 0; i < N; ++i) {
      float total = 0.0f;
      for (int row = 0; row < sum_rows; ++row) total += shared[row][threadIdx.x * N + i];
      partial[(std::size_t{gridDim.y} * o + blockIdx.y) * width + column + i] = total;
    }
  }
}

/// out[c] = or += sum over chunks of partial[chunk][c].
/// Shapes: out (width), partial (chunks, width).
static __global__ void sum_partials(float* out, const float* partial, int chunks, int width,
                                    bool accumulate) {
  const int c = blockIdx.x * blockDim.x + threadIdx.x;
  if (c >= width) return;
  float total = accumulate ? out[c] : 0.0f;
#pragma unroll 8
  for (int chunk = 0; chunk < chunks; ++chunk)
    total += partial[std::size_t{static_cast<unsigned>(chunk)} * width + c];
  out[c] = total;
}

/// Both stages. `out` holds one array of `width` sums per output of the term; `packs` says that the term may
/// read four columns at once.
template <class Term>
void column_sums(rank& r, const char* name, float* const (&out)[Term::outputs], const Term& term, int tokens,
                 int width, bool packs, bool accumulate) {
  const int columns = packs ? sum_columns : warp_size;
  const int tiles = ceil_div(width, columns);
  int chunks = ceil_div(tokens, 8 * sum_rows);
  if (chunks > most_chunks) chunks = most_chunks;
  const int rows_per_chunk = chunks == 0 ? 0 : ceil_div(tokens, chunks);
  if (std::size_t{sizeof(float)} * Term::outputs * chunks * width > r.workspace_bytes)
    fail(r,
         std::string(name) + ": the partial sums do not fit into the workspace; width must be below 131072");
  float* partial = reinterpret_cast<float*>(r.workspace);
  const dim3 grid(tiles, chunks), block(warp_size, sum_rows);
  if (packs)
    launch(r, name, column_partials<4, Term>, grid, block, 0, partial, term, tokens, width, rows_per_chunk);
  else
    launch(r, name, column_partials<1, Term>, grid, block, 0, partial, term, tokens, width, rows_per_chunk);
  for (int o = 0; o < Term::outputs; ++o)
    launch(r, name, sum_partials, ceil_div(width, 128), 128, 0, out[o],
           partial + std::size_t{static_cast<unsigned>(o)} * chunks * width, chunks, width, accumulate);
}

}  // namespace rankc::cuda
