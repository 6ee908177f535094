// SPDX-License-Identifier: Apache-2.0
// Time and bandwidth of the memory-bound kernels: microseconds per call within a graph of many calls, and
// TB/s with every tensor counted once. Data is random, and calls rotate through buffers larger than the L2
// cache.
// usage: kernels_bench [part of a kernel's name]
#include <rankc/runtime/cuda/context.hpp>
#include <rankc/runtime/cuda/kernels.hpp>
#include <rankc/contract/fp8.hpp>

#include "lone_rank.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace rankc::runtime;
using namespace rankc::cuda;

constexpr std::size_t arena_bytes = std::size_t{40} << 30, rotation_bytes = std::size_t{512} << 20;

void require(cudaError_t status) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "%s\n", cudaGetErrorString(status));
  std::exit(1);
}

/// Hands out operands from the arena. Each complete set of operands is followed by the next one.
class operands {
 public:
  explicit operands(std::size_t begin) : used_(begin) {}
  at take(std::size_t bytes) {
    const at where{used_};
    used_ += (bytes + 255) / 256 * 256;
    return where;
  }
  std::size_t used() const { return used_; }

 private:
  std::size_t used_;
};

class bench {
 public:
  explicit bench(const char* filter) : filter_(filter), context_(0, alone_.about, 0) {
    fill_noise();
    require(cudaEventCreate(&begin_));
    require(cudaEventCreate(&end_));
    std::printf("%-24s %-18s %10s %8s\n", "kernel", "shape", "us", "TB/s");
  }
  rank& of() { return context_.of(); }
  layout& where() { return alone_.layout; }

  /// Time `call`, which takes its operands from the `operands` argument and moves `bytes`.
  void time(const char* name, const std::string& shape, double bytes,
            const std::function<void(const lane&, operands&)>& call) {
    if (std::strstr(name, filter_) == nullptr) return;
    operands first(0);
    call(of()[0], first);
    require(cudaStreamSynchronize(compute()));
    const std::size_t set = first.used();
    const std::size_t sets = std::min(arena_bytes / set, rotation_bytes / set + 1);
    const int calls = static_cast<int>(std::clamp<std::size_t>(rotation_bytes / set, 4, 40));
    require(cudaStreamBeginCapture(compute(), cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < calls; ++i) {
      operands next(static_cast<std::size_t>(i) % sets * set);
      call(of()[0], next);
    }
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t made = nullptr;
    require(cudaStreamEndCapture(compute(), &graph));
    require(cudaGraphInstantiate(&made, graph));
    float best = 1e30f;
    for (int round = 0; round < 4; ++round) {
      float ms = 0;
      require(cudaEventRecord(begin_, compute()));
      require(cudaGraphLaunch(made, compute()));
      require(cudaEventRecord(end_, compute()));
      require(cudaEventSynchronize(end_));
      require(cudaEventElapsedTime(&ms, begin_, end_));
      best = std::min(best, ms);
    }
    const double us = best * 1000.0 / calls;
    std::printf("%-24s %-18s %10.1f %8.2f\n", name, shape.c_str(), us, bytes / us * 1e-6);
    std::fflush(stdout);
    require(cudaGraphExecDestroy(made));
    require(cudaGraphDestroy(graph));
  }

  /// Random ids below `vocab` at the end of the arena. With `text`, low ids are far more frequent than high
  /// ones.
  at ids(std::size_t count, int vocab, bool text) {
    std::mt19937 engine(7);
    std::uniform_real_distribution<double> draw(0.0, 1.0);
    std::vector<std::int32_t> values(count);
    for (std::int32_t& id : values) {
      const double u = draw(engine);
      id = std::min(vocab - 1, static_cast<int>(text ? std::pow(vocab, u) - 1 : u * vocab));
    }
    const at where{arena_bytes};
    require(cudaMemcpy(of().at<std::int32_t>(where), values.data(), count * 4, cudaMemcpyHostToDevice));
    return where;
  }

 private:
  cudaStream_t compute() { return of()[0].stream; }

  /// Random bf16 in (-2, 2). Read as f32, they are ordinary numbers of that size as well.
  void fill_noise() {
    std::mt19937 engine(1);
    std::uniform_real_distribution<float> draw(-2.0f, 2.0f);
    std::vector<bf16> noise(std::size_t{1} << 24);
    for (bf16& x : noise) x = __float2bfloat16_rn(draw(engine));
    const std::size_t bytes = noise.size() * sizeof(bf16);
    std::byte* arena = of().arena;
    require(cudaMemcpy(arena, noise.data(), bytes, cudaMemcpyHostToDevice));
    for (std::size_t done = bytes; done < arena_bytes; done += bytes)
      require(cudaMemcpy(arena + done, arena, bytes, cudaMemcpyDeviceToDevice));
  }

  test::lone_rank alone_{arena_bytes + (std::size_t{1} << 20), false};
  const char* filter_;
  context context_;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

std::string text(std::size_t a, std::size_t b) { return std::to_string(a) + " x " + std::to_string(b); }

void element_wise(bench& b, int tokens, int width) {
  const std::size_t n = static_cast<std::size_t>(tokens) * width, bytes = 2 * n;
  const std::string shape = text(tokens, width);
  const auto one = static_cast<double>(bytes);
  b.time("copy (memcpy)", shape, 2 * one, [=](const lane& on, operands& o) {
    const at y = o.take(bytes), x = o.take(bytes);
    require(cudaMemcpyAsync(on.at<std::byte>(y), on.at<std::byte>(x), bytes, cudaMemcpyDeviceToDevice,
                            on.stream));
  });
  b.time("gelu", shape, 2 * one,
         [=](const lane& on, operands& o) { gelu<bf16>(on, o.take(bytes), o.take(bytes), n); });
  b.time("gelu_grad", shape, 3 * one, [=](const lane& on, operands& o) {
    gelu_grad<bf16>(on, o.take(bytes), o.take(bytes), o.take(bytes), n);
  });
  b.time("add", shape, 3 * one,
         [=](const lane& on, operands& o) { add<bf16>(on, o.take(bytes), o.take(bytes), o.take(bytes), n); });
  b.time("swiglu", shape, 3 * one, [=](const lane& on, operands& o) {
    const at y = o.take(bytes), gate = o.take(2 * bytes);
    swiglu<bf16>(on, y, gate, gate + std::size_t{2} * width, tokens, width, 2 * width);
  });
  b.time("swiglu_grad", shape, 5 * one, [=](const lane& on, operands& o) {
    const at dy = o.take(bytes), gate = o.take(2 * bytes), dgate = o.take(2 * bytes);
    const std::size_t half = std::size_t{2} * width;
    swiglu_grad<bf16>(on, dgate, dgate + half, dy, gate, gate + half, tokens, width, 2 * width);
  });
  b.time("bias", shape, 2 * one, [=](const lane& on, operands& o) {
    bias<bf16>(on, o.take(bytes), o.take(bytes), o.take(2 * width), tokens, width);
  });
  b.time("bias_add", shape, 3 * one, [=](const lane& on, operands& o) {
    bias_add<bf16>(on, o.take(bytes), o.take(bytes), o.take(2 * width), o.take(bytes), tokens, width);
  });
  b.time("bias_grad", shape, one, [=](const lane& on, operands& o) {
    bias_grad<bf16>(on, o.take(4 * width), o.take(bytes), tokens, width, true);
  });
  b.time("position", shape, 2 * one, [=](const lane& on, operands& o) {
    position<bf16>(on, o.take(bytes), o.take(bytes), o.take(2048 * width), tokens, width, 1024, 0);
  });
  b.time("position_grad", shape, one, [=](const lane& on, operands& o) {
    position_grad<bf16>(on, o.take(4096 * width), o.take(bytes), tokens, width, 1024, 0, true);
  });
  b.time("working_copy", shape, 3 * one,
         [=](const lane& on, operands& o) { working_copy(on, o.take(bytes), o.take(2 * bytes), n); });
}

void norms(bench& b, int tokens, int width) {
  const std::size_t bytes = std::size_t{2} * tokens * width, row = std::size_t{4} * width;
  const std::size_t stats = std::size_t{8} * tokens;
  const std::string shape = text(tokens, width);
  const auto one = static_cast<double>(bytes);
  b.time("layer_norm", shape, 2 * one, [=](const lane& on, operands& o) {
    layer_norm<bf16>(on, o.take(bytes), o.take(stats), o.take(bytes), o.take(row), o.take(row), tokens, width,
                     1e-5);
  });
  b.time("add_layer_norm", shape, 4 * one, [=](const lane& on, operands& o) {
    add_layer_norm<bf16>(on, o.take(bytes), o.take(bytes), o.take(stats), o.take(bytes), o.take(bytes),
                         o.take(row), o.take(row), tokens, width, 1e-5);
  });
  b.time("bias_add_layer_norm", shape, 4 * one, [=](const lane& on, operands& o) {
    bias_add_layer_norm<bf16>(on, o.take(bytes), o.take(bytes), o.take(stats), o.take(bytes), o.take(row),
                              o.take(bytes), o.take(row), o.take(row), tokens, width, 1e-5);
  });
  b.time("layer_norm_dx", shape, 3 * one, [=](const lane& on, operands& o) {
    layer_norm_dx<bf16>(on, o.take(bytes), o.take(bytes), o.take(bytes), o.take(stats), o.take(row), tokens,
                        width);
  });
  b.time("layer_norm_dw", shape, 2 * one, [=](const lane& on, operands& o) {
    layer_norm_dw<bf16>(on, o.take(row), o.take(row), o.take(bytes), o.take(bytes), o.take(stats), tokens,
                        width, true);
  });
  b.time("layer_norm_grad", shape, 3 * one, [=](const lane& on, operands& o) {
    layer_norm_grad<bf16>(on, o.take(bytes), o.take(row), o.take(row), o.take(bytes), o.take(bytes),
                          o.take(stats), o.take(row), tokens, width, true);
  });
  b.time("layer_norm_grad_add", shape, 4 * one, [=](const lane& on, operands& o) {
    layer_norm_grad_add<bf16>(on, o.take(bytes), o.take(row), o.take(row), o.take(bytes), o.take(bytes),
                              o.take(stats), o.take(row), o.take(bytes), tokens, width, true);
  });
  b.time("layer_norm_grad_add_bias", shape, 4 * one, [=](const lane& on, operands& o) {
    layer_norm_grad_add_bias<bf16>(on, o.take(bytes), o.take(row), o.take(row), o.take(row), o.take(bytes),
                                   o.take(bytes), o.take(stats), o.take(row), o.take(bytes), tokens, width,
                                   true);
  });
  b.time("rms_norm", shape, 2 * one, [=](const lane& on, operands& o) {
    rms_norm<bf16>(on, o.take(bytes), o.take(stats), o.take(bytes), o.take(row), tokens, width, 1e-5);
  });
  b.time("add_rms_norm", shape, 4 * one, [=](const lane& on, operands& o) {
    add_rms_norm<bf16>(on, o.take(bytes), o.take(bytes), o.take(stats), o.take(bytes), o.take(bytes),
                       o.take(row), tokens, width, 1e-5);
  });
  b.time("rms_norm_dw", shape, 2 * one, [=](const lane& on, operands& o) {
    rms_norm_dw<bf16>(on, o.take(row), o.take(bytes), o.take(bytes), o.take(stats), tokens, width, true);
  });
  b.time("rms_norm_grad", shape, 3 * one, [=](const lane& on, operands& o) {
    rms_norm_grad<bf16>(on, o.take(bytes), o.take(row), o.take(bytes), o.take(bytes), o.take(stats),
                        o.take(row), tokens, width, true);
  });
  b.time("rms_norm_grad_add", shape, 4 * one, [=](const lane& on, operands& o) {
    rms_norm_grad_add<bf16>(on, o.take(bytes), o.take(row), o.take(bytes), o.take(bytes), o.take(stats),
                            o.take(row), o.take(bytes), tokens, width, true);
  });
}

/// The fp8 kernels. Bytes count each tensor once; an fp8 tensor counts both of its layouts, by rows and by
/// columns.
void narrow(bench& b, int tokens, int width) {
  const auto rows = static_cast<std::size_t>(tokens), columns = static_cast<std::size_t>(width);
  const std::size_t bytes = 2 * rows * columns, q = rankc::runtime::fp8_layout{rows, columns}.bytes();
  const std::size_t q_rows = rankc::runtime::fp8_rows_layout{rows, columns}.bytes();
  const std::string shape = text(tokens, width);
  const auto one = static_cast<double>(bytes);
  b.time("to_e4m3", shape, 2 * one,
         [=](const lane& on, operands& o) { to_e4m3<bf16>(on, o.take(q), o.take(bytes), tokens, width); });
  b.time("to_e5m2", shape, 2 * one,
         [=](const lane& on, operands& o) { to_e5m2<bf16>(on, o.take(q), o.take(bytes), tokens, width); });
  const std::size_t row = std::size_t{2} * width, stats = std::size_t{8} * tokens;
  b.time("layer_norm_e4m3", shape, 2 * one, [=](const lane& on, operands& o) {
    layer_norm_e4m3<bf16>(on, o.take(q), o.take(stats), o.take(bytes), o.take(row), o.take(row), tokens,
                          width, 1e-5);
  });
  b.time("rms_norm_e4m3", shape, 2 * one, [=](const lane& on, operands& o) {
    rms_norm_e4m3<bf16>(on, o.take(q), o.take(stats), o.take(bytes), o.take(row), tokens, width, 1e-5);
  });
  b.time("gelu_e4m3", shape, 2 * one,
         [=](const lane& on, operands& o) { gelu_e4m3<bf16>(on, o.take(q), o.take(bytes), tokens, width); });
  b.time("swiglu_e4m3", shape, 3 * one, [=](const lane& on, operands& o) {
    const at y = o.take(q), gate = o.take(2 * bytes);
    swiglu_e4m3<bf16>(on, y, gate, gate + std::size_t{2} * width, tokens, width, 2 * width);
  });
  b.time("swiglu_grad_e5m2", shape, 5 * one, [=](const lane& on, operands& o) {
    const at made = o.take(rankc::runtime::fp8_layout{rows, 2 * columns}.bytes()), dy = o.take(bytes),
             gate = o.take(2 * bytes);
    swiglu_grad_e5m2<bf16>(on, made, made + std::size_t(width), dy, gate, gate + std::size_t{2} * width,
                           tokens, width, 2 * width);
  });
  b.time("to_e4m3_rows", shape, 2 * one, [=](const lane& on, operands& o) {
    to_e4m3_rows<bf16>(on, o.take(q_rows), o.take(bytes), tokens, width);
  });
  b.time("rms_norm_e4m3_rows", shape, 2 * one, [=](const lane& on, operands& o) {
    rms_norm_e4m3_rows<bf16>(on, o.take(q_rows), o.take(stats), o.take(bytes), o.take(row), tokens, width,
                             1e-5);
  });
  b.time("swiglu_e4m3_rows", shape, 3 * one, [=](const lane& on, operands& o) {
    const at y = o.take(q_rows), gate = o.take(2 * bytes);
    swiglu_e4m3_rows<bf16>(on, y, gate, gate + std::size_t{2} * width, tokens, width, 2 * width);
  });
  b.time("swiglu_grad_e4m3_rows", shape, 5 * one, [=](const lane& on, operands& o) {
    const at made = o.take(rankc::runtime::fp8_rows_layout{rows, 2 * columns}.bytes()), dy = o.take(bytes),
             gate = o.take(2 * bytes);
    swiglu_grad_e4m3_rows<bf16>(on, made, made + std::size_t(width), dy, gate, gate + std::size_t{2} * width,
                                tokens, width, 2 * width);
  });
}

void ropes(bench& b, int tokens, int heads, int dim, int stride) {
  const std::size_t all = std::size_t{2} * tokens * stride;
  const double bytes = 4.0 * tokens * heads * dim;
  const int seq = std::min(tokens, 8192);
  b.time("rope", text(tokens, heads) + " x " + std::to_string(dim), bytes, [=](const lane& on, operands& o) {
    rope<bf16>(on, o.take(all), o.take(all), o.take(std::size_t{4} * seq * dim), tokens, heads, dim, seq,
               stride);
  });
}

void cross_entropies(bench& b, int tokens, int vocab) {
  const std::size_t bytes = std::size_t{2} * tokens * vocab, row = std::size_t{4} * tokens;
  const std::string shape = text(tokens, vocab);
  const auto one = static_cast<double>(bytes);
  const at targets = b.ids(tokens, vocab, false);
  b.time("row_max", shape, one,
         [=](const lane& on, operands& o) { row_max<bf16>(on, o.take(row), o.take(bytes), tokens, vocab); });
  b.time("exp_sums", shape, one, [=](const lane& on, operands& o) {
    exp_sums<bf16>(on, o.take(2 * row), o.take(bytes), o.take(row), targets, tokens, vocab, 0);
  });
  b.time("softmax_sums", shape, one, [=](const lane& on, operands& o) {
    softmax_sums<bf16>(on, o.take(row), o.take(2 * row), o.take(bytes), targets, tokens, vocab);
  });
  b.time("softmax_grad", shape, 2 * one, [=](const lane& on, operands& o) {
    const at logits = o.take(bytes);
    softmax_grad<bf16>(on, logits, o.take(2 * row), logits, o.take(row), targets, tokens, vocab, 0, 1e-5);
  });
  b.time("softmax_sums_grad", shape, 2 * one, [=](const lane& on, operands& o) {
    const at logits = o.take(bytes);
    softmax_sums_grad<bf16>(on, logits, o.take(2 * row), logits, targets, tokens, vocab, 1e-5);
  });
  b.time("cross_entropy", std::to_string(tokens), 8.0 * tokens, [=](const lane& on, operands& o) {
    cross_entropy<bf16>(on, o.take(4), o.take(2 * row), tokens, 1e-5, true);
  });
}

void embeddings(bench& b, int tokens, int rows, int width, bool repeated) {
  const std::size_t bytes = std::size_t{2} * tokens * width, table = std::size_t{2} * rows * width;
  const std::string shape = text(tokens, width) + (repeated ? " text" : "");
  const auto one = static_cast<double>(bytes);
  const at ids = b.ids(tokens, rows, repeated);
  b.time("embedding", shape, 2 * one, [=](const lane& on, operands& o) {
    embedding<bf16>(on, o.take(bytes), ids, o.take(table), tokens, rows, width, 0);
  });
  // The bytes without repeated ids: dy once, and one f32 row read and written per token.
  b.time("embedding_grad", shape, 5 * one, [=](const lane& on, operands& o) {
    embedding_grad<bf16>(on, o.take(2 * table), o.take(bytes), ids, tokens, rows, width, 0, true);
  });
}

void optimizers(bench& b, std::size_t count, std::size_t n_ranges) {
  std::vector<range> ranges;
  for (std::size_t i = 0; i < n_ranges; ++i)
    ranges.push_back({count / n_ranges * i, count / n_ranges - 8, i % 2 == 0});
  const std::string shape = text(count, n_ranges);
  b.time("sum_squares", shape, 4.0 * static_cast<double>(count), [=](const lane& on, operands& o) {
    sum_squares<bf16>(on, o.take(4), o.take(4 * count), ranges, false);
  });
  b.time("adamw", shape, 30.0 * static_cast<double>(count), [=, &b](const lane& on, operands& o) {
    const at w = o.take(4 * count), g = o.take(4 * count), m = o.take(4 * count), v = o.take(4 * count);
    b.where().working_copy = o.take(2 * count);
    adamw<bf16>(on, w, g, m, v, o.take(4), ranges);
  });
}

}  // namespace

int main(int argc, char** argv) {
  bench b(argc > 1 ? argv[1] : "");
  for (const auto& [tokens, width] : {std::pair{65536, 768}, {16384, 1600}, {16384, 4096}, {4096, 768}}) {
    element_wise(b, tokens, width);
    norms(b, tokens, width);
  }
  element_wise(b, 16384, 14336);
  for (const auto& [rows, width] :
       {std::pair{16384, 14336}, {16384, 4096}, {4096, 4096}, {16384, 6400}, {16384, 1600}, {1600, 1600}})
    narrow(b, rows, width);
  norms(b, 32768, 1280);
  ropes(b, 16384, 32, 128, 6144);
  ropes(b, 16384, 8, 128, 6144);
  ropes(b, 4096, 12, 64, 2304);
  cross_entropies(b, 65536, 50304);
  cross_entropies(b, 16384, 128256);
  cross_entropies(b, 4096, 50304);
  for (const bool repeated : {false, true}) {
    embeddings(b, 65536, 50304, 768, repeated);
    embeddings(b, 16384, 128256, 4096, repeated);
    embeddings(b, 4096, 50304, 768, repeated);
  }
  optimizers(b, 1'000'000'000, 100);
  optimizers(b, 124'000'000, 150);
  return 0;
}
