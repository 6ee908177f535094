// SPDX-License-Identifier: Apache-2.0
// The speed of attention: milliseconds and TFLOP/s of bf16 shapes, and the same within documents. A causal
// product counts half, and the gradient 2.5 times the forward. On a GPU:
//   cmake --build build --target attention_bench && build/tests/bench/attention_bench
#include <rankc/runtime/cuda/context.hpp>
#include <rankc/runtime/cuda/kernels.hpp>

#include "attention/random_starts.hpp"
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
  int documents = 0;  // mean length; 0: one document
};
constexpr shape shapes[] = {{"GPT-2 124M, 64 rows", 64, 1024, 12, 12, 64},
                            {"GPT-2 124M, 4 rows", 4, 1024, 12, 12, 64},
                            {"GPT-2 1.5B, 16 rows", 16, 1024, 25, 25, 64},
                            {"Llama 3 8B, 2 rows", 2, 8192, 32, 8, 128}};
constexpr shape in_documents[] = {
    {"GPT-2 124M, 16 rows", 16, 1024, 12, 12, 64},     {"documents of 200", 16, 1024, 12, 12, 64, 200},
    {"documents of 1000", 16, 1024, 12, 12, 64, 1000}, {"one document", 16, 1024, 12, 12, 64, 100000000},
    {"Llama 3.2 3B, 2 rows", 2, 4096, 24, 8, 128},     {"documents of 200", 2, 4096, 24, 8, 128, 200},
    {"documents of 1000", 2, 4096, 24, 8, 128, 1000},  {"documents of 4000", 2, 4096, 24, 8, 128, 4000},
    {"one document", 2, 4096, 24, 8, 128, 100000000}};

/// Milliseconds of a call: the mean of `times` consecutive calls in a CUDA graph, as in a step.
template <class F>
double milliseconds(context& owner, int times, F call) {
  const lane& on = owner.of()[0];
  call();
  const cudaGraphExec_t graph = owner.capture([&] {
    for (int i = 0; i < times; ++i) call();
  });
  cudaEvent_t from, to;
  cudaEventCreate(&from);
  cudaEventCreate(&to);
  cudaGraphLaunch(graph, on.stream);
  cudaEventRecord(from, on.stream);
  cudaGraphLaunch(graph, on.stream);
  cudaEventRecord(to, on.stream);
  cudaEventSynchronize(to);
  float elapsed = 0.0f;
  cudaEventElapsedTime(&elapsed, from, to);
  cudaEventDestroy(from);
  cudaEventDestroy(to);
  cudaGraphExecDestroy(graph);
  return elapsed / times;
}

void run(const shape& s, bool deterministic) {
  const attention_shape planned{s.rows, s.seq, s.heads,      s.kv_heads,
                                s.dim,  s.dim, sizeof(bf16), deterministic};
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
           scratch = take(attention_grad_scratch(planned)), starts = take(4 * tokens);
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
  const std::vector<std::int32_t> begin = test::random_starts(s.rows, s.seq, std::max(1, s.documents), 3);
  cudaMemcpy(on.at<std::int32_t>(starts), begin.data(), 4 * tokens, cudaMemcpyHostToDevice);
  cudaDeviceSynchronize();

  const auto column = [&](at from, int first) { return from + sizeof(bf16) * first * s.dim; };
  const int stride = static_cast<int>(width), k = s.heads, v = s.heads + s.kv_heads;
  const double forward = milliseconds(owner, 10, [&] {
    if (s.documents > 0)
      return document_attention<bf16>(on, o, lse, scratch, qkv, column(qkv, k), column(qkv, v), starts,
                                      s.rows, s.seq, s.heads, s.kv_heads, s.dim, s.dim, stride, stride,
                                      stride);
    attention<bf16>(on, o, lse, scratch, qkv, column(qkv, k), column(qkv, v), s.rows, s.seq, s.heads,
                    s.kv_heads, s.dim, s.dim, stride, stride, stride);
  });
  const double backward = milliseconds(owner, 10, [&] {
    if (s.documents > 0)
      return document_attention_grad<bf16>(on, dqkv, column(dqkv, k), column(dqkv, v), scratch, dout, qkv,
                                           column(qkv, k), column(qkv, v), o, lse, starts, s.rows, s.seq,
                                           s.heads, s.kv_heads, s.dim, s.dim, stride, stride, stride);
    attention_grad<bf16>(on, dqkv, column(dqkv, k), column(dqkv, v), scratch, dout, qkv, column(qkv, k),
                         column(qkv, v), o, lse, s.rows, s.seq, s.heads, s.kv_heads, s.dim, s.dim, stride,
                         stride, stride);
  });
  // Two GEMMs with 2 flops per multiply-add; half of the scores are masked.
  const double flops = 2.0 * tokens * s.seq * output;
  std::printf(
      "%-20s %-13s forward %8.3f ms %6.0f TFLOP/s   backward %8.3f ms %6.0f TFLOP/s   scratch %5zu MiB\n",
      s.name, deterministic ? "deterministic" : "", forward, flops / forward * 1e-9, backward,
      2.5 * flops / backward * 1e-9, attention_grad_scratch(planned) >> 20);
}

}  // namespace

int main() try {
  for (const bool deterministic : {false, true})
    for (const shape& s : shapes) run(s, deterministic);
  for (const shape& s : in_documents) run(s, false);
} catch (const rankc::runtime::failure& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
