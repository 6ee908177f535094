// SPDX-License-Identifier: Apache-2.0
// The gradients of LayerNorm and RMSNorm. The kernel that finds dx can sum up dgain and dshift on the way: a
// fixed number of blocks walk the tokens, each thread keeps the sums of its columns in registers, and a
// second kernel adds the blocks' sums. Source: Ba et al. 2016; Zhang and Sennrich 2019.
#include <rankc/runtime/cuda/kernels.hpp>

#include "column_sums.cuh"
#include "team.cuh"

namespace rankc::cuda {
namespace {

constexpr int most_threads = 512;

/// What the kernel reads and writes; what the variant has no use for is null.
template <class T>
struct backward_operands {
  T* dx;
  const T *dy, *x;
  const float* stats;
  const T *gain, *residual;
};

/// What a thread reads of one token.
template <bool Added, int N, int P, class T>
struct backward_row {
  pack<T, N> dy[P], x[P], residual[Added ? P : 1];
  __device__ void read(const backward_operands<T>& o, std::size_t begin, int width) {
#pragma unroll
    for (int p = 0; p < P; ++p) {
      const int c = team_column<N>(p);
      if (c >= width) break;
      dy[p] = load<T, N>(o.dy + begin + c);
      x[p] = load<T, N>(o.x + begin + c);
      if constexpr (Added) residual[p] = load<T, N>(o.residual + begin + c);
    }
  }
};

/// partial[block][c] = sum over the block's teams of their sums of column c. Every thread calls it.
template <int N, int P>
__device__ void write_partials(float* partial, float (&sum)[P][N], int width) {
  __shared__ float shared[most_threads * 8];  // a block of several teams has at most 8 columns a thread
  partial += std::size_t{blockIdx.x} * width;
  for (unsigned turn = 0; turn < blockDim.y; ++turn) {
    __syncthreads();
    if (threadIdx.y != turn) continue;
#pragma unroll
    for (int p = 0; p < P; ++p) {
      const int c = team_column<N>(p);
      if (c >= width) break;
      for (int i = 0; i < N; ++i) {
        if (turn > 0) sum[p][i] += shared[c + i];
        if (turn + 1 < blockDim.y) shared[c + i] = sum[p][i];
        else partial[c + i] = sum[p][i];
      }
    }
  }
}

/// dx = (residual +) s (e - mean(e) - xhat mean(e xhat)), with e = dy gain, xhat = (x - m) s; RMSNorm has m =
/// 0 and no mean(e). With Gains also the block's sums of dy xhat and of dy. Shapes: dx, dy, x, residual
/// (tokens, width), stats as forward saved them, gain (width), partial f32
///         (1 or 2 for Centred, blocks, width). dx may be dy or residual.
template <bool Centred, bool Gains, bool Added, int N, int P, class T>
__global__ void __launch_bounds__(most_threads, N* P <= 8 ? 2 : 1)
    norm_backward(backward_operands<T> o, float* partial, int tokens, int width) {
  team mine;
  float dgain[P][N] = {}, dshift[P][N] = {};
  pack<T, N> gain[P];
#pragma unroll
  for (int p = 0; p < P; ++p)
    if (const int c = team_column<N>(p); c < width) gain[p] = load<T, N>(o.gain + c);
  const int step = gridDim.x * blockDim.y;
  int token = blockIdx.x * blockDim.y + threadIdx.y;
  backward_row<Added, N, P, T> row, next;
  if (token < tokens) next.read(o, static_cast<std::size_t>(token) * width, width);
  for (; token < tokens; token += step) {
    const std::size_t begin = static_cast<std::size_t>(token) * width;
    row = next;
    float mean = 0.0f, scale;
    if constexpr (Centred) {
      const auto saved = load<float, 2>(o.stats + 2 * static_cast<std::size_t>(token));
      mean = saved.element[0];
      scale = saved.element[1];
    } else scale = o.stats[token];
    if (token + step < tokens) next.read(o, begin + static_cast<std::size_t>(step) * width, width);

    float sum[2] = {};  // of e xhat, and of e
#pragma unroll
    for (int p = 0; p < P; ++p) {
      if (team_column<N>(p) >= width) break;
      float d[N], hat[N], g[N];
      unpack(d, row.dy[p]);
      unpack(hat, row.x[p]);
      unpack(g, gain[p]);
      for (int i = 0; i < N; ++i) {
        hat[i] = (hat[i] - mean) * scale;
        sum[0] += d[i] * g[i] * hat[i];
        sum[1] += d[i] * g[i];
        if constexpr (Gains) dgain[p][i] += d[i] * hat[i];
        if constexpr (Gains && Centred) dshift[p][i] += d[i];
      }
    }
    mine.sum(sum);
    const float mean_product = sum[0] / width, mean_e = Centred ? sum[1] / width : 0.0f;
#pragma unroll
    for (int p = 0; p < P; ++p) {
      const int c = team_column<N>(p);
      if (c >= width) break;
      float d[N], hat[N], g[N];
      unpack(d, row.dy[p]);
      unpack(hat, row.x[p]);
      unpack(g, gain[p]);
      for (int i = 0; i < N; ++i)
        d[i] = scale * (d[i] * g[i] - mean_e - (hat[i] - mean) * scale * mean_product);
      if constexpr (Added) {
        unpack(g, row.residual[p]);
        for (int i = 0; i < N; ++i) d[i] += g[i];
      }
      store(o.dx + begin + c, packed<T>(d));
    }
  }
  if constexpr (Gains) {
    write_partials(partial, dgain, width);
    if constexpr (Centred) write_partials(partial + std::size_t{gridDim.x} * width, dshift, width);
  }
}

template <bool Centred, bool Gains, bool Added, int N, int P, class T>
int run_with(rank& r, const char* name, const backward_operands<T>& o, int tokens, int width) {
  const dim3 block = team_block(ceil_div(width, N), P, most_threads);
  const int needed = ceil_div(tokens, block.y), most = N * P <= 8 ? 2 * processors : processors;
  const int blocks = needed < most ? needed : most;
  launch(r, name, norm_backward<Centred, Gains, Added, N, P, T>, blocks, block, 0, o,
         reinterpret_cast<float*>(r.workspace), tokens, width);
  return blocks;
}

/// With packs of 16 bytes where all operands allow them, else element by element; f32 always the latter.
/// Returns the number of partial sums left in the workspace.
template <bool Centred, bool Gains, bool Added, class T>
int run(rank& r, const char* name, const backward_operands<T>& o, int tokens, int width) {
  if (width > widest_row)
    fail(r, std::string(name) + ": width is " + std::to_string(width) + ", but must be at most " +
                std::to_string(widest_row));
  if constexpr (sizeof(T) == 2)
    if (packable<8>(width, o.dx, o.dy, o.x, o.gain, o.residual)) {
      if (width <= most_threads * 8) return run_with<Centred, Gains, Added, 8, 1>(r, name, o, tokens, width);
      if (width <= most_threads * 16) return run_with<Centred, Gains, Added, 8, 2>(r, name, o, tokens, width);
      return run_with<Centred, Gains, Added, 8, 8>(r, name, o, tokens, width);
    }
  if (width <= most_threads * 8) return run_with<Centred, Gains, Added, 1, 8>(r, name, o, tokens, width);
  return run_with<Centred, Gains, Added, 1, 64>(r, name, o, tokens, width);
}

/// dgain sums dy xhat, dshift sums dy.
template <bool Centred, class T>
struct gain_term {
  static constexpr int outputs = Centred ? 2 : 1;
  const T *dy, *x;
  const float* stats;
  int width;
  template <int N>
  __device__ void add(float (&sum)[outputs][N], int n, int c) const {
    const std::size_t token = n;
    float d[N], hat[N];
    unpack(d, load<T, N>(dy + token * width + c));
    unpack(hat, load<T, N>(x + token * width + c));
    float mean = 0.0f, scale;
    if constexpr (Centred) {
      mean = stats[2 * token];
      scale = stats[2 * token + 1];
    } else scale = stats[token];
    for (int i = 0; i < N; ++i) {
      sum[0][i] += d[i] * (hat[i] - mean) * scale;
      if constexpr (Centred) sum[1][i] += d[i];
    }
  }
};

template <bool Centred, class T>
void run_dw(rank& r, const char* name, const sum_targets<Centred ? 2 : 1>& to, at dy, at x, at stats,
            int tokens, int width, bool accumulate) {
  const T *d = r.at<T>(dy), *row = r.at<T>(x);
  column_sums<wide<T>>(r, name, to, gain_term<Centred, T>{d, row, r.at<float>(stats), width}, tokens, width,
                       packable<wide<T>>(width, d, row), accumulate);
}

template <bool Centred, bool Gains, class T>
int run_grad(rank& r, const char* name, at dx, at dy, at x, at stats, at gain, const T* residual, int tokens,
             int width) {
  const backward_operands<T> o{r.at<T>(dx),        r.at<T>(dy),   r.at<T>(x),
                               r.at<float>(stats), r.at<T>(gain), residual};
  if constexpr (Gains)
    if (residual != nullptr) return run<Centred, Gains, true>(r, name, o, tokens, width);
  return run<Centred, Gains, false>(r, name, o, tokens, width);
}

}  // namespace

template <class T>
void layer_norm_dx(rank& r, at dx, at dy, at x, at stats, at gain, int tokens, int width) {
  run_grad<true, false, T>(r, "layer_norm_dx", dx, dy, x, stats, gain, nullptr, tokens, width);
}

template <class T>
void layer_norm_dw(rank& r, at dgain, at dshift, at dy, at x, at stats, int tokens, int width,
                   bool accumulate) {
  run_dw<true, T>(r, "layer_norm_dw", {{r.at<float>(dgain), r.at<float>(dshift)}}, dy, x, stats, tokens,
                  width, accumulate);
}

template <class T>
void layer_norm_grad(rank& r, at dx, at dgain, at dshift, at dy, at x, at stats, at gain, int tokens,
                     int width, bool accumulate) {
  const char* name = "layer_norm_grad";
  const int blocks = run_grad<true, true, T>(r, name, dx, dy, x, stats, gain, nullptr, tokens, width);
  add_partials<2>(r, name, {{r.at<float>(dgain), r.at<float>(dshift)}}, blocks, width, accumulate);
}

template <class T>
void layer_norm_grad_add(rank& r, at dx, at dgain, at dshift, at dy, at x, at stats, at gain, at residual,
                         int tokens, int width, bool accumulate) {
  const char* name = "layer_norm_grad_add";
  const int blocks =
      run_grad<true, true, T>(r, name, dx, dy, x, stats, gain, r.at<T>(residual), tokens, width);
  add_partials<2>(r, name, {{r.at<float>(dgain), r.at<float>(dshift)}}, blocks, width, accumulate);
}

template <class T>
void rms_norm_dx(rank& r, at dx, at dy, at x, at stats, at gain, int tokens, int width) {
  run_grad<false, false, T>(r, "rms_norm_dx", dx, dy, x, stats, gain, nullptr, tokens, width);
}

template <class T>
void rms_norm_dw(rank& r, at dgain, at dy, at x, at stats, int tokens, int width, bool accumulate) {
  run_dw<false, T>(r, "rms_norm_dw", {{r.at<float>(dgain)}}, dy, x, stats, tokens, width, accumulate);
}

template <class T>
void rms_norm_grad(rank& r, at dx, at dgain, at dy, at x, at stats, at gain, int tokens, int width,
                   bool accumulate) {
  const char* name = "rms_norm_grad";
  const int blocks = run_grad<false, true, T>(r, name, dx, dy, x, stats, gain, nullptr, tokens, width);
  add_partials<1>(r, name, {{r.at<float>(dgain)}}, blocks, width, accumulate);
}

template <class T>
void rms_norm_grad_add(rank& r, at dx, at dgain, at dy, at x, at stats, at gain, at residual, int tokens,
                       int width, bool accumulate) {
  const char* name = "rms_norm_grad_add";
  const int blocks =
      run_grad<false, true, T>(r, name, dx, dy, x, stats, gain, r.at<T>(residual), tokens, width);
  add_partials<1>(r, name, {{r.at<float>(dgain)}}, blocks, width, accumulate);
}

template void layer_norm_dx<float>(rank&, at, at, at, at, at, int, int);
template void layer_norm_dx<bf16>(rank&, at, at, at, at, at, int, int);
template void layer_norm_dw<float>(rank&, at, at, at, at, at, int, int, bool);
template void layer_norm_dw<bf16>(rank&, at, at, at, at, at, int, int, bool);
template void layer_norm_grad<float>(rank&, at, at, at, at, at, at, at, int, int, bool);
template void layer_norm_grad<bf16>(rank&, at, at, at, at, at, at, at, int, int, bool);
template void layer_norm_grad_add<float>(rank&, at, at, at, at, at, at, at, at, int, int, bool);
template void layer_norm_grad_add<bf16>(rank&, at, at, at, at, at, at, at, at, int, int, bool);
template void rms_norm_dx<float>(rank&, at, at, at, at, at, int, int);
template void rms_norm_dx<bf16>(rank&, at, at, at, at, at, int, int);
template void rms_norm_dw<float>(rank&, at, at, at, at, int, int, bool);
template void rms_norm_dw<bf16>(rank&, at, at, at, at, int, int, bool);
template void rms_norm_grad<float>(rank&, at, at, at, at, at, at, int, int, bool);
template void rms_norm_grad<bf16>(rank&, at, at, at, at, at, at, int, int, bool);
template void rms_norm_grad_add<float>(rank&, at, at, at, at, at, at, at, int, int, bool);
template void rms_norm_grad_add<bf16>(rank&, at, at, at, at, at, at, at, int, int, bool);

}  // namespace rankc::cuda
