// SPDX-License-Identifier: Apache-2.0
// How fast attention runs: milliseconds and TFLOP/s of the bf16 shapes that matter. A causal product counts
// half, and the gradient 2.5 times the forward. Run by hand on a GPU:
//   cmake --build build --target attention_bench && build/tests/bench/attention_bench
#include <rankc/runtime/cuda/context.hpp>
#include <rankc/runtime/cuda/kernels.hpp>

#include "lone_rank.hpp"

#include <algorithm>
#include <cstdio>
#include <random>
#include <utility>
#include <vector>

namespace {

using namespace rankc::runtime;
using namespace rankc::cuda;

struct shape {
  const char* name;
  int rows, seq, heads, kv_heads, dim;
};
constexpr shape shapes[] = {{"GPT-2 124M, 64 rows", 64, 1024, 12, 12, 64},
                            {"GPT-2 124M, 4 rows", 4, 1024, 12, 12, 64},
                            {"GPT-2 1.5B, 16 rows", 16, 1024, 25, 25, 64},
                            {"Llama 3 8B, 2 rows", 2, 8192, 32, 8, 128}};

/// Milliseconds of a call, over `times` calls in a row.
template <class F>
double milliseconds(const lane& on, int times, F call) {
  cudaEvent_t from, to;
  cudaEventCreate(&from);
  cudaEventCreate(&to);
  for (int i = 0; i < 3; ++i) call();
  cudaEventRecord(from, on.stream);
  for (int i = 0; i < times; ++i) call();
  cudaEventRecord(to, on.stream);
  cudaEventSynchronize(to);
  float elapsed = 0.0f;
  cudaEventElapsedTime(&elapsed, from, to);
  cudaEventDestroy(from);
  cudaEventDestroy(to);
  return elapsed / times;
}

void run(const shape& s, bool deterministic) {
  const attention_shape planned{s.rows, s.seq, s.heads, s.kv_heads, s.dim, sizeof(bf16), deterministic};
  const std::size_t tokens = std::size_t{1} * s.rows * s.seq, width = (s.heads + 2 * s.kv_heads) * s.dim,
                    output = s.heads * s.dim;
  std::size_t end = 0;
  const auto take = [&](std::size_t bytes) {
    const at where{end};
    end += (bytes + 255) / 256 * 256;
    return where;
  };
  const at qkv = take(2 * tokens * width), dqkv = take(2 * tokens * width), o = take(2 * tokens * output),
           dout = take(2 * tokens * output), lse = take(4 * tokens * s.heads),
           scratch = take(attention_grad_scratch(planned));
  const test::lone_rank alone(end, deterministic);
  context owner(0, alone.about, 0);
  const lane& on = owner.of()[0];

  std::mt19937 engine(1);
  std::normal_distribution<float> draw;
  std::vector<bf16> values(1 << 20);
  for (bf16& x : values) x = __float2bfloat16(draw(engine));
  for (const auto& [where, count] : {std::pair(qkv, tokens * width), std::pair(dout, tokens * output)})
    for (std::size_t i = 0; i < count; i += values.size())
      cudaMemcpy(on.at<bf16>(where) + i, values.data(), 2 * std::min(values.size(), count - i),
                 cudaMemcpyHostToDevice);
  cudaDeviceSynchronize();

  const auto column = [&](at from, int first) { return from + sizeof(bf16) * first * s.dim; };
  const int stride = static_cast<int>(width), k = s.heads, v = s.heads + s.kv_heads;
  const double forward = milliseconds(on, 10, [&] {
    attention<bf16>(on, o, lse, scratch, qkv, column(qkv, k), column(qkv, v), s.rows, s.seq, s.heads,
                    s.kv_heads, s.dim, stride, stride);
  });
  const double backward = milliseconds(on, 10, [&] {
    attention_grad<bf16>(on, dqkv, column(dqkv, k), column(dqkv, v), scratch, dout, qkv, column(qkv, k),
                         column(qkv, v), o, lse, s.rows, s.seq, s.heads, s.kv_heads, s.dim, stride, stride);
  });
  const double flops = 2.0 * tokens * s.seq * output;  // two products of 2 flops each, half of them masked
  std::printf(
      "%-20s %-13s forward %8.3f ms %6.0f TFLOP/s   backward %8.3f ms %6.0f TFLOP/s   scratch %5zu MiB\n",
      s.name, deterministic ? "deterministic" : "", forward, flops / forward * 1e-9, backward,
      2.5 * flops / backward * 1e-9, attention_grad_scratch(planned) >> 20);
}

}  // namespace

int main() try {
  for (const bool deterministic : {false, true})
    for (const shape& s : shapes) run(s, deterministic);
} catch (const rankc::runtime::failure& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
