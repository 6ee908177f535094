// SPDX-License-Identifier: Apache-2.0
// The gradients of LayerNorm and RMSNorm. The kernel of dx can also compute dgain and dshift. A fixed number
// of blocks walk the tokens, each thread keeps the sums of its columns in registers, and a second kernel adds
// up the blocks' sums. It can sum the residual the same way, which gives the gradient of the bias that was
// added before it.
// Source: Ba et al. 2016; Zhang and Sennrich 2019.
#include <rankc/runtime/cuda/kernels.hpp>

#include "../device/column_sums.cuh"
#include "norms_narrow.hpp"
#include "../device/rows_ahead.cuh"

#include <algorithm>

namespace rankc::runtime::cuda {
namespace {

/// The split of a row: P packs of N elements per thread. A block has at most `threads` threads, limited by
/// the registers for their column sums, and a multiprocessor has one block. `ahead` rows of a team fit into
/// shared memory.
template <int N, int P>
struct share {
  static constexpr int held = N * P;
  static constexpr int threads = held <= 8 ? 768 : 512;
  static constexpr int ahead = N == 8 && P <= 2 ? 2 : 0;
};

/// The operands of the kernel. Those that the variant does not use are null.
template <class T>
struct backward_operands {
  T* dx;
  const T *dy, *x;
  const float* stats;
  const T *gain, *residual;
};

/// The use of a residual: there is none; it is added to dx; its columns are also summed.
enum class residual_use { none, added, summed };

/// to[0, N) = x, in packs.
template <int N>
__device__ void store_floats(float* to, const float (&x)[N]) {
  constexpr int n = N < 4 ? N : 4;
  for (int i = 0; i < N; i += n) {
    pack<float, n> part;
    for (int j = 0; j < n; ++j) part.element[j] = x[i + j];
    store(to + i, part);
  }
}

/// to[c] = the thread's sum of column c, for each of its columns.
template <int N, int P>
__device__ void store_sums(float* to, const float (&sum)[P][N], int width) {
#pragma unroll
  for (int p = 0; p < P; ++p) {
    const int c = team_column<N>(p);
    if (c >= width) break;
    store_floats(to + c, sum[p]);
  }
}

/// partial[block][c] = sum over the block's teams of their sums of column c. Every thread calls it.
template <int N, int P>
__device__ void write_partials(float* partial, const float (&sum)[P][N], int width) {
  partial += std::size_t{blockIdx.x} * width;
  if (blockDim.y == 1) return store_sums(partial, sum, width);
  __syncthreads();  // the old contents of shared memory have been read
  store_sums(dynamic_shared() + threadIdx.y * width, sum, width);
  __syncthreads();
  const int thread = threadIdx.y * blockDim.x + threadIdx.x, threads = blockDim.x * blockDim.y;
  for (int c = thread; c < width; c += threads) {
    float total = 0.0f;
    for (unsigned t = 0; t < blockDim.y; ++t) total += dynamic_shared()[t * width + c];
    partial[c] = total;
  }
}

/// dx = (residual +) s (e - mean(e) - xhat mean(e xhat)), with e = dy gain, xhat = (x - m) s; RMSNorm has m =
/// 0 and no mean(e). With Gains it also computes the block's sums of dy xhat and, if Centred, of dy, then
/// those of the residual.
/// Shapes: dx, dy, x, residual (tokens, width), stats as forward saved them, gain (width), partial f32 (1 to
/// 3, blocks, width). dx may be dy or residual.
template <bool Centred, bool Gains, residual_use Residual, int N, int P, class T>
__global__ void __launch_bounds__(share<N, P>::threads, 1)
    norm_backward(backward_operands<T> o, float* partial, int tokens, int width) {
  constexpr bool added = Residual != residual_use::none, summed = Residual == residual_use::summed;
  constexpr int of_token = Centred ? 2 : 1;  // statistics
  using reader = rows_ahead<T, N, P, added ? 3 : 2, share<N, P>::ahead>;
  enum operand { dy, x, residual };
  const auto from = [&]() -> typename reader::matrices {
    if constexpr (added) return {{o.dy, o.x, o.residual}};
    else return {{o.dy, o.x}};
  };
  team mine;
  float dgain[P][N] = {}, dshift[P][N] = {}, dbias[summed ? P : 1][N] = {};
  pack<T, N> gain[P];
#pragma unroll
  for (int p = 0; p < P; ++p)
    if (const int c = team_column<N>(p); c < width) gain[p] = load<T, N>(o.gain + c);
  reader rows(from(), blockIdx.x * blockDim.y + threadIdx.y, gridDim.x * blockDim.y, tokens, width);
  const auto stats_of = [&](int token) {
    pack<float, of_token> stats{};
    if (token < tokens)
      for (int i = 0; i < of_token; ++i) stats.element[i] = o.stats[std::size_t(token) * of_token + i];
    return stats;
  };
  pack<float, of_token> stats = stats_of(rows.row());
  for (; rows.arrived(); rows.advance()) {
    const float scale = stats.element[of_token - 1];
    float offset = 0.0f;  // xhat = scale x + offset
    if constexpr (Centred) offset = -scale * stats.element[0];
    stats = stats_of(rows.next());

    float sum[Centred ? 2 : 1] = {};  // sums of e xhat, and of e
#pragma unroll
    for (int p = 0; p < P; ++p) {
      if (team_column<N>(p) >= width) break;
      float d[N], hat[N], g[N];
      unpack(d, rows.get(dy, p));
      unpack(hat, rows.get(x, p));
      unpack(g, gain[p]);
      for (int i = 0; i < N; ++i) {
        hat[i] = hat[i] * scale + offset;
        sum[0] += d[i] * g[i] * hat[i];
        if constexpr (Centred) sum[1] += d[i] * g[i];
        if constexpr (Gains) dgain[p][i] += d[i] * hat[i];
        if constexpr (Gains && Centred) dshift[p][i] += d[i];
      }
      forget(gain[p]);
    }
    mine.sum(sum);
    const float of_hat = -scale * (sum[0] / width);
    float constant = 0.0f;
    if constexpr (Centred) constant = -scale * (sum[1] / width);
#pragma unroll
    for (int p = 0; p < P; ++p) {
      const int c = team_column<N>(p);
      if (c >= width) break;
      float d[N], hat[N], g[N];
      unpack(d, rows.get(dy, p));
      unpack(hat, rows.get(x, p));
      unpack(g, gain[p]);
      for (int i = 0; i < N; ++i) d[i] = d[i] * g[i] * scale + constant + (hat[i] * scale + offset) * of_hat;
      if constexpr (added) {
        unpack(g, rows.get(residual, p));
        for (int i = 0; i < N; ++i) d[i] += g[i];
        if constexpr (summed)
          for (int i = 0; i < N; ++i) dbias[p][i] += g[i];
      }
      store(o.dx + std::size_t(rows.row()) * width + c, packed<T>(d));
    }
  }
  const std::size_t of_blocks = std::size_t{gridDim.x} * width;
  if constexpr (Gains) {
    write_partials(partial, dgain, width);
    if constexpr (Centred) write_partials(partial + of_blocks, dshift, width);
    if constexpr (summed) write_partials(partial + 2 * of_blocks, dbias, width);
  }
}

template <bool Centred, bool Gains, residual_use Residual, int N, int P, class T>
int run_with(const lane& on, const char* name, const backward_operands<T>& o, int tokens, int width) {
  using reader = rows_ahead<T, N, P, Residual == residual_use::none ? 2 : 3, share<N, P>::ahead>;
  const dim3 block = team_block(ceil_div(width, N), P, share<N, P>::threads);
  const std::size_t of_teams = Gains && block.y > 1 ? sizeof(float) * block.y * width : 0;
  const int blocks = std::min<int>(ceil_div(tokens, block.y), processors);
  launch(on, name, norm_backward<Centred, Gains, Residual, N, P, T>, blocks, block,
         std::max(reader::bytes(block.x * block.y), of_teams), o, reinterpret_cast<float*>(on.workspace),
         tokens, width);
  return blocks;
}

/// Uses packs of 16 bytes if all operands allow them, else single elements; f32 always uses single elements.
/// Returns the number of partial sums left in the workspace.
template <bool Centred, bool Gains, residual_use Residual, class T>
int run(const lane& on, const char* name, const backward_operands<T>& o, int tokens, int width) {
  check_width(on, name, width);
  if constexpr (sizeof(T) == 2)
    if (packable<8>(width, o.dx, o.dy, o.x, o.gain, o.residual)) {
      if (width <= 1024) return run_with<Centred, Gains, Residual, 8, 1>(on, name, o, tokens, width);
      if (width <= 8192) return run_with<Centred, Gains, Residual, 8, 2>(on, name, o, tokens, width);
      return run_with<Centred, Gains, Residual, 8, 8>(on, name, o, tokens, width);
    }
  if (width <= 512 * 8) return run_with<Centred, Gains, Residual, 1, 8>(on, name, o, tokens, width);
  return run_with<Centred, Gains, Residual, 1, 64>(on, name, o, tokens, width);
}

template <bool Centred, bool Gains, residual_use Residual, class T>
int run_grad(const lane& on, const char* name, at dx, at dy, at x, at stats, at gain, const T* residual,
             int tokens, int width) {
  const backward_operands<T> o{on.at<T>(dx),        on.at<T>(dy),   on.at<T>(x),
                               on.at<float>(stats), on.at<T>(gain), residual};
  return run<Centred, Gains, Residual>(on, name, o, tokens, width);
}

}  // namespace

template <class T>
void layer_norm_dx(const lane& on, at dx, at dy, at x, at stats, at gain, int tokens, int width) {
  run_grad<true, false, residual_use::none, T>(on, "layer_norm_dx", dx, dy, x, stats, gain, nullptr, tokens,
                                               width);
}

template <class T>
void layer_norm_grad(const lane& on, at dx, at dgain, at dshift, at dy, at x, at stats, at gain, int tokens,
                     int width, bool accumulate) {
  const char* name = "layer_norm_grad";
  const int blocks =
      run_grad<true, true, residual_use::none, T>(on, name, dx, dy, x, stats, gain, nullptr, tokens, width);
  add_partials<2>(on, name, {{on.at<float>(dgain), on.at<float>(dshift)}}, blocks, width, accumulate);
}

template <class T>
void layer_norm_grad_add(const lane& on, at dx, at dgain, at dshift, at dy, at x, at stats, at gain,
                         at residual, int tokens, int width, bool accumulate) {
  const char* name = "layer_norm_grad_add";
  const int blocks = run_grad<true, true, residual_use::added, T>(on, name, dx, dy, x, stats, gain,
                                                                  on.at<T>(residual), tokens, width);
  add_partials<2>(on, name, {{on.at<float>(dgain), on.at<float>(dshift)}}, blocks, width, accumulate);
}

template <class T>
void layer_norm_grad_add_bias(const lane& on, at dx, at dgain, at dshift, at db, at dy, at x, at stats,
                              at gain, at residual, int tokens, int width, bool accumulate) {
  const char* name = "layer_norm_grad_add_bias";
  const int blocks = run_grad<true, true, residual_use::summed, T>(on, name, dx, dy, x, stats, gain,
                                                                   on.at<T>(residual), tokens, width);
  add_partials<3>(on, name, {{on.at<float>(dgain), on.at<float>(dshift), on.at<float>(db)}}, blocks, width,
                  accumulate);
}

template <class T>
void rms_norm_dx(const lane& on, at dx, at dy, at x, at stats, at gain, int tokens, int width) {
  run_grad<false, false, residual_use::none, T>(on, "rms_norm_dx", dx, dy, x, stats, gain, nullptr, tokens,
                                                width);
}

template <class T>
void rms_norm_grad(const lane& on, at dx, at dgain, at dy, at x, at stats, at gain, int tokens, int width,
                   bool accumulate) {
  const char* name = "rms_norm_grad";
  const auto blocks = [&] {
    if constexpr (std::is_same_v<T, bf16>)
      if (is_narrow(width) && packable<8>(width, on.at<T>(dx), on.at<T>(dy), on.at<T>(x), on.at<T>(gain)))
        return narrow_rms_norm_grad(on, on.at<T>(dx), on.at<T>(dy), on.at<T>(x), on.at<float>(stats),
                                    on.at<T>(gain), tokens, width);
    return run_grad<false, true, residual_use::none, T>(on, name, dx, dy, x, stats, gain, nullptr, tokens,
                                                        width);
  };
  add_partials<1>(on, name, {{on.at<float>(dgain)}}, blocks(), width, accumulate);
}

template <class T>
void rms_norm_grad_add(const lane& on, at dx, at dgain, at dy, at x, at stats, at gain, at residual,
                       int tokens, int width, bool accumulate) {
  const char* name = "rms_norm_grad_add";
  const int blocks = run_grad<false, true, residual_use::added, T>(on, name, dx, dy, x, stats, gain,
                                                                   on.at<T>(residual), tokens, width);
  add_partials<1>(on, name, {{on.at<float>(dgain)}}, blocks, width, accumulate);
}

template void layer_norm_dx<float>(const lane&, at, at, at, at, at, int, int);
template void layer_norm_dx<bf16>(const lane&, at, at, at, at, at, int, int);
template void layer_norm_grad<float>(const lane&, at, at, at, at, at, at, at, int, int, bool);
template void layer_norm_grad<bf16>(const lane&, at, at, at, at, at, at, at, int, int, bool);
template void layer_norm_grad_add<float>(const lane&, at, at, at, at, at, at, at, at, int, int, bool);
template void layer_norm_grad_add<bf16>(const lane&, at, at, at, at, at, at, at, at, int, int, bool);
template void layer_norm_grad_add_bias<float>(const lane&, at, at, at, at, at, at, at, at, at, int, int,
                                              bool);
template void layer_norm_grad_add_bias<bf16>(const lane&, at, at, at, at, at, at, at, at, at, int, int, bool);
template void rms_norm_dx<float>(const lane&, at, at, at, at, at, int, int);
template void rms_norm_dx<bf16>(const lane&, at, at, at, at, at, int, int);
template void rms_norm_grad<float>(const lane&, at, at, at, at, at, at, int, int, bool);
template void rms_norm_grad<bf16>(const lane&, at, at, at, at, at, at, int, int, bool);
template void rms_norm_grad_add<float>(const lane&, at, at, at, at, at, at, at, int, int, bool);
template void rms_norm_grad_add<bf16>(const lane&, at, at, at, at, at, at, at, int, int, bool);

}  // namespace rankc::runtime::cuda
