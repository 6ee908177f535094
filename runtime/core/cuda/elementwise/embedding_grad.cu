// SPDX-License-Identifier: Apache-2.0
// The gradient of an embedding table, and of positions in documents, with sums in a fixed order. The tokens
// are sorted by row (a stable radix sort), so the tokens of one row are contiguous: a run. Blocks add up
// chunks of equal length, whatever the length of the runs. A run that crosses chunks leaves a partial sum in
// each chunk, and a second kernel adds these up in order. One thread per column writes each row of the table.
#include <rankc/runtime/cuda/kernels.hpp>

#include "../device/device.cuh"
#include "../device/documents.cuh"

#include <cub/device/device_radix_sort.cuh>

namespace rankc::runtime::cuda {
namespace {

constexpr int longest_chunk = 64,
              ahead = 8;  // ahead: rows of dy that a thread loads before it adds the first

/// The table row of a token's id. The table starts with row `first`.
struct rows_of_ids {
  const std::int32_t* ids;
  int first;
  __device__ int row_of(int n) const { return ids[n] - first; }
};

/// key[n] = the token's row, or `rows` if this rank does not hold it; token[n] = n.
/// Shapes: all (tokens).
template <class Rows>
__global__ void name_rows(std::int32_t* key, std::int32_t* token, Rows by, int tokens, int rows) {
  const int n = blockIdx.x * blockDim.x + threadIdx.x;
  if (n >= tokens) return;
  const int row = by.row_of(n);
  key[n] = row >= 0 && row < rows ? row : rows;
  token[n] = n;
}

/// The sorted tokens and the partial sums, for both kernels. `partial` is the sum of the chunk's part of a
/// run that began in an earlier chunk. `opening` is the sum of a run that begins in the chunk and continues
/// in the next.
/// Shapes: key, token (tokens); partial and opening f32 (chunks, width).
struct runs {
  const std::int32_t *key, *token;
  float *partial, *opening;
  int tokens, rows, width, chunk;
};

/// Adds to N neighbouring floats, to which no other thread adds.
template <int N>
__device__ void add_to(float* to, const float (&sum)[N], bool packs) {
  if constexpr (N % 4 == 0)
    if (packs) {
      pack<float, 4> old[N / 4];
      for (int i = 0; i < N; i += 4) old[i / 4] = load<float, 4>(to + i);
      for (int i = 0; i < N; i += 4) {
        for (int j = 0; j < 4; ++j) old[i / 4].element[j] += sum[i + j];
        store(to + i, old[i / 4]);
      }
      return;
    }
  for (int i = 0; i < N; ++i) to[i] += sum[i];
}

/// Stores N neighbouring floats, in packs if N allows. The workspace's rows are aligned to packs.
template <int N>
__device__ void keep(float* to, const float (&sum)[N]) {
  constexpr int n = N < 4 ? N : 4;
  for (int i = 0; i < N; i += n) {
    pack<float, n> part;
    for (int j = 0; j < n; ++j) part.element[j] = sum[i + j];
    store(to + i, part);
  }
}

/// dtable[key] += sum of dy[token] for the runs within this block's chunk. Sums of runs that cross its ends
/// go to `partial` and `opening`.
/// Shapes: dtable f32 (rows, width), dy (tokens, width); grid (chunks, ceil(width / columns of a block)).
template <int N, class T>
__global__ void __launch_bounds__(256) add_chunks(float* dtable, const T* dy, runs of, bool packs) {
  __shared__ std::int32_t key[longest_chunk + 1], token[longest_chunk];
  const int begin = blockIdx.x * of.chunk;
  const int count = of.tokens - begin < of.chunk ? of.tokens - begin : of.chunk;
  for (int n = threadIdx.x; n <= count; n += blockDim.x) {
    key[n] = begin + n < of.tokens ? of.key[begin + n] : -1;
    if (n < count) token[n] = of.token[begin + n];
  }
  __syncthreads();
  const int c = (blockIdx.y * blockDim.x + threadIdx.x) * N;
  if (c >= of.width) return;
  bool continued = begin > 0 && of.key[begin - 1] == key[0];
  float sum[N] = {};
  for (int n = 0; n < count; n += ahead) {
    pack<T, N> in[ahead];
#pragma unroll
    for (int k = 0; k < ahead; ++k)
      if (n + k < count && key[n + k] != of.rows)
        in[k] = load<T, N>(dy + static_cast<std::size_t>(token[n + k]) * of.width + c);
#pragma unroll
    for (int k = 0; k < ahead; ++k) {
      if (n + k >= count || key[n + k] == of.rows) return;
      float d[N];
      unpack(d, in[k]);
      for (int i = 0; i < N; ++i) sum[i] += d[i];
      const bool last = n + k + 1 == count;
      if (!last && key[n + k + 1] == key[n + k]) continue;
      float* carried = (continued ? of.partial : of.opening) + std::size_t{blockIdx.x} * of.width + c;
      if (continued || key[n + k + 1] == key[n + k]) keep(carried, sum);
      else add_to(dtable + static_cast<std::size_t>(key[n + k]) * of.width + c, sum, packs);
      for (int i = 0; i < N; ++i) sum[i] = 0.0f;
      continued = false;
    }
  }
}

/// dtable[key] += the parts of the run that begins in this block's chunk and continues in the next, if there
/// is one.
/// Shapes: dtable f32 (rows, width); grid (chunks - 1, ceil(width / block)).
__global__ void __launch_bounds__(256) add_crossing(float* dtable, runs of, int chunks) {
  const int first = blockIdx.x + 1, row = of.key[first * of.chunk - 1];
  if (row == of.rows || of.key[first * of.chunk] != row) return;
  if (first > 1 && of.key[(first - 1) * of.chunk - 1] == row) return;  // the run began earlier
  int end = first;  // the run has parts in the chunks [first, end); a warp examines 32 at a time
  for (bool all = true; all;) {
    const int chunk = end + static_cast<int>(threadIdx.x % warp_size);
    const unsigned in = __ballot_sync(0xffffffffu, chunk < chunks && of.key[chunk * of.chunk] == row);
    end += __popc(in);
    all = in == 0xffffffffu;
  }
  const int c = blockIdx.y * blockDim.x + threadIdx.x;
  if (c >= of.width) return;
  float sum = of.opening[static_cast<std::size_t>(first - 1) * of.width + c];
#pragma unroll 16
  for (int chunk = first; chunk < end; ++chunk)
    sum += of.partial[static_cast<std::size_t>(chunk) * of.width + c];
  dtable[static_cast<std::size_t>(row) * of.width + c] += sum;
}

int bits_of(int rows) {  // bits of the largest key, which is `rows`
  int bits = 1;
  while ((rows >> bits) != 0) ++bits;
  return bits;
}

/// The tokens of a chunk: so few that the chunks of all columns fill the device.
int chunk_of(int tokens, int threads_across) {
  int chunk = longest_chunk;
  while (chunk > ahead && static_cast<std::size_t>(tokens) * threads_across / chunk < processors * 1024)
    chunk /= 2;
  return chunk;
}

/// dtable[by.row_of(n)] = or += dy[n]
template <class T, class Rows>
void add_rows(const lane& on, const char* name, at dtable, at dy, const Rows& by, int tokens, int rows,
              int width, bool accumulate) {
  if (!accumulate) clear<float>(on, dtable, static_cast<std::size_t>(rows) * width);
  float* to = on.at<float>(dtable);
  const T* d = on.at<T>(dy);
  constexpr int n = wide<T>;
  const bool packs = packable<n>(width, d);
  const int across = packs ? width / n : width, chunk = chunk_of(tokens, across),
            chunks = ceil_div(tokens, chunk);

  // Workspace: keys and tokens, before and after sorting, then the sums, then the scratch of the sort.
  const std::size_t column = (static_cast<std::size_t>(tokens) + 63) / 64 * 64,
                    sums = (static_cast<std::size_t>(chunks) * width + 63) / 64 * 64;
  std::int32_t* key = reinterpret_cast<std::int32_t*>(on.workspace);
  std::int32_t *token = key + column, *sorted_key = token + column, *sorted_token = sorted_key + column;
  float *partial = reinterpret_cast<float*>(sorted_token + column), *opening = partial + sums;
  void* scratch = opening + sums;
  const int bits = bits_of(rows);
  std::size_t bytes = 0;
  check(
      on,
      cub::DeviceRadixSort::SortPairs(nullptr, bytes, key, sorted_key, token, sorted_token, tokens, 0, bits),
      name);
  if (bytes + 4 * (4 * column + 2 * sums) > on.workspace_bytes)
    fail(on, "RC5124: {}: {} tokens of width {} do not fit into the workspace", name, tokens, width);
  launch(on, name, name_rows<Rows>, ceil_div(tokens, 256), 256, 0, key, token, by, tokens, rows);
  check(on,
        cub::DeviceRadixSort::SortPairs(scratch, bytes, key, sorted_key, token, sorted_token, tokens, 0, bits,
                                        on.stream),
        name);
  const runs of{sorted_key, sorted_token, partial, opening, tokens, rows, width, chunk};
  const unsigned threads = row_threads(across);
  const dim3 grid(chunks, ceil_div(across, threads));
  if (packs) launch(on, name, add_chunks<n, T>, grid, threads, 0, to, d, of, packable<4>(width, to));
  else launch(on, name, add_chunks<1, T>, grid, threads, 0, to, d, of, false);
  launch(on, name, add_crossing, dim3(chunks - 1, ceil_div(width, row_threads(width))), row_threads(width), 0,
         to, of, chunks);
}

}  // namespace

template <class T>
void embedding_grad(const lane& on, at dtable, at dy, at ids, int tokens, int rows, int width, int first,
                    bool accumulate) {
  add_rows<T>(on, "embedding_grad", dtable, dy, rows_of_ids{on.at<std::int32_t>(ids), first}, tokens, rows,
              width, accumulate);
}

template <class T>
void document_position_grad(const lane& on, at dtable, at dy, at starts, int tokens, int width, int seq,
                            int first, bool accumulate) {
  const rows_in_documents by{on.at<std::int32_t>(starts), {seq}, first};
  add_rows<T>(on, "document_position_grad", dtable, dy, by, tokens, seq, width, accumulate);
}

template <class T>
void document_chunk_position_grad(const lane& on, at dtable, at dy, at starts, int tokens, int width,
                                  int rows, int seq, int ranks, int first, bool accumulate) {
  const runtime::chunks has{seq, ranks, first / (rows * (seq / ranks))};
  const auto by = rows_in_documents::of(on.at<std::int32_t>(starts), has, rows, first);
  add_rows<T>(on, "document_chunk_position_grad", dtable, dy, by, tokens, seq, width, accumulate);
}

template void embedding_grad<float>(const lane&, at, at, at, int, int, int, int, bool);
template void embedding_grad<bf16>(const lane&, at, at, at, int, int, int, int, bool);
template void document_position_grad<float>(const lane&, at, at, at, int, int, int, int, bool);
template void document_position_grad<bf16>(const lane&, at, at, at, int, int, int, int, bool);
template void document_chunk_position_grad<float>(const lane&, at, at, at, int, int, int, int, int, int,
                                                  bool);
template void document_chunk_position_grad<bf16>(const lane&, at, at, at, int, int, int, int, int, int, bool);

}  // namespace rankc::runtime::cuda
