// SPDX-License-Identifier: Apache-2.0
// Embedding rows, looked up and, for the gradient, summed without atomics: the tokens are sorted by id (a
// stable radix sort), and one block adds up the run of tokens that share a row, in a fixed order.
#include <rankc/runtime/cuda/kernels.hpp>

#include "device.cuh"

#include <cub/device/device_radix_sort.cuh>

namespace rankc::cuda {
namespace {

/// y[n] = table[id[n] - first], or 0 where that row is not held here.
/// Shapes: y (tokens, width), ids (tokens), table (rows, width); a block per token.
template <int N, class T>
__global__ void look_up(T* y, const std::int32_t* ids, const T* table, int rows, int width, int first) {
  const std::size_t token = blockIdx.x;
  const int row = ids[token] - first;
  const bool held = row >= 0 && row < rows;
  for (int c = threadIdx.x * N; c < width; c += blockDim.x * N) {
    pack<T, N> out;
    for (int i = 0; i < N; ++i) out.element[i] = from_float<T>(0.0f);
    if (held) out = load<T, N>(table + static_cast<std::size_t>(row) * width + c);
    store(y + token * width + c, out);
  }
}

/// key[n] = the token's row here, or `rows` where it is held elsewhere; token[n] = n. All (tokens).
__global__ void name_rows(std::int32_t* key, std::int32_t* token, const std::int32_t* ids, int tokens,
                          int rows, int first) {
  const int n = blockIdx.x * blockDim.x + threadIdx.x;
  if (n >= tokens) return;
  const int row = ids[n] - first;
  key[n] = row >= 0 && row < rows ? row : rows;
  token[n] = n;
}

constexpr int run_rows = 8;

/// dtable[key] += sum of dy[token] over the run of equal keys that begins at this block's place, if one does.
/// Shapes: key, token (tokens) sorted by key, dy (tokens, width), dtable f32 (rows, width);
///         grid (tokens, ceil(width / 32)), block (32 columns, 8 tokens of the run at a time).
template <class T>
__global__ void add_runs(float* dtable, const std::int32_t* key, const std::int32_t* token, const T* dy,
                         int tokens, int rows, int width) {
  const int begin = blockIdx.x, row = key[begin];
  if (row == rows || (begin > 0 && key[begin - 1] == row)) return;
  __shared__ float shared[run_rows][warp_size];
  const int c = blockIdx.y * warp_size + threadIdx.x;
  float sum = 0.0f;
  if (c < width)
    for (int n = begin + static_cast<int>(threadIdx.y); n < tokens && key[n] == row; n += run_rows)
      sum += to_float(dy[static_cast<std::size_t>(token[n]) * width + c]);
  shared[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || c >= width) return;
  float total = 0.0f;
  for (int part = 0; part < run_rows; ++part) total += shared[part][threadIdx.x];
  dtable[static_cast<std::size_t>(row) * width + c] += total;
}

int bits_of(int rows) {  // of the largest key, which is `rows`
  int bits = 1;
  while ((rows >> bits) != 0) ++bits;
  return bits;
}

}  // namespace

template <class T>
void embedding(rank& r, at y, at ids, at table, int tokens, int rows, int width, int first) {
  T *to = r.at<T>(y), *row = r.at<T>(table);
  const std::int32_t* id = r.at<std::int32_t>(ids);
  constexpr int n = wide<T>;
  if (packable<n>(width, to, row))
    launch(r, "embedding", look_up<n, T>, tokens, row_threads(width / n), 0, to, id, row, rows, width, first);
  else launch(r, "embedding", look_up<1, T>, tokens, row_threads(width), 0, to, id, row, rows, width, first);
}

template <class T>
void embedding_grad(rank& r, at dtable, at dy, at ids, int tokens, int rows, int width, int first,
                    bool accumulate) {
  if (!accumulate) clear<float>(r, dtable, static_cast<std::size_t>(rows) * width);
  // Workspace: keys and tokens, before and after sorting, then the sort's own.
  const std::size_t column = (static_cast<std::size_t>(tokens) + 63) / 64 * 64;
  std::int32_t* key = reinterpret_cast<std::int32_t*>(r.workspace);
  std::int32_t *token = key + column, *sorted_key = token + column, *sorted_token = sorted_key + column;
  void* scratch = sorted_token + column;
  const int bits = bits_of(rows);
  std::size_t bytes = 0;
  check(
      r,
      cub::DeviceRadixSort::SortPairs(nullptr, bytes, key, sorted_key, token, sorted_token, tokens, 0, bits),
      "embedding_grad: size of the sort");
  if (bytes + 4 * column * sizeof(std::int32_t) > r.workspace_bytes)
    fail(r, "embedding_grad: sorting " + std::to_string(tokens) + " tokens does not fit into the workspace");
  launch(r, "embedding_grad", name_rows, ceil_div(tokens, 256), 256, 0, key, token, r.at<std::int32_t>(ids),
         tokens, rows, first);
  check(r,
        cub::DeviceRadixSort::SortPairs(scratch, bytes, key, sorted_key, token, sorted_token, tokens, 0, bits,
                                        r.on(stream::compute)),
        "embedding_grad: sort");
  launch(r, "embedding_grad", add_runs<T>, dim3(tokens, ceil_div(width, warp_size)),
         dim3(warp_size, run_rows), 0, r.at<float>(dtable), sorted_key, sorted_token, r.at<T>(dy), tokens,
         rows, width);
}

template void embedding<float>(rank&, at, at, at, int, int, int, int);
template void embedding<bf16>(rank&, at, at, at, int, int, int, int);
template void embedding_grad<float>(rank&, at, at, at, int, int, int, int, bool);
template void embedding_grad<bf16>(rank&, at, at, at, int, int, int, int, bool);

}  // namespace rankc::cuda
