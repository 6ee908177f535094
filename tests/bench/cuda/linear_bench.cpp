// SPDX-License-Identifier: Apache-2.0
// Speed of linear layers at the shapes of GPT-2 124M and Llama-3-8B in bf16: the heuristics' first algorithm
// compared with the tuned one, and epilogues compared with separate kernels. Prints TFLOP/s of the GEMM alone
// and, after the tuned figure, the time of tuning. Operands are random, because zeros run faster.
#include <rankc/runtime/cuda/context.hpp>
#include <rankc/runtime/cuda/kernels.hpp>

#include "lone_rank.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <utility>
#include <vector>

namespace rankc::runtime::cuda {
namespace {

constexpr std::size_t gibibyte = std::size_t{1} << 30;

void require(cudaError_t status) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "linear_bench: %s\n", cudaGetErrorString(status));
  std::exit(1);
}

/// A rank with an arena of random bf16 numbers of about unit size; operands are taken from it one after the
/// other.
class stand {
 public:
  stand(std::size_t bytes, bool deterministic) : alone_(bytes, deterministic), context_(0, alone_.about, 0) {
    std::mt19937 engine(1);
    std::normal_distribution<float> draw;
    std::vector<bf16> numbers(std::size_t{1} << 22);
    for (bf16& x : numbers) x = __float2bfloat16_rn(draw(engine));
    const std::size_t block = numbers.size() * sizeof(bf16);
    for (std::size_t at = 0; at < bytes; at += block)
      require(cudaMemcpy(of().arena + at, at == 0 ? static_cast<const void*>(numbers.data()) : of().arena,
                         std::min(block, bytes - at), cudaMemcpyDefault));
    require(cudaDeviceSynchronize());
  }
  rank& of() { return context_.of(); }
  at take(std::size_t elements, std::size_t size = 2) {
    const at where{used_};
    used_ += (elements * size + 255) / 256 * 256;
    if (used_ > alone_.layout.arena_bytes) std::exit(2);
    return where;
  }
  void rewind() { used_ = 0; }

 private:
  test::lone_rank alone_;
  std::size_t used_ = 0;
  context context_;
};

/// Milliseconds of the first call, which tunes.
double first_call(const lane& on, const std::function<void(const lane&)>& body) {
  const auto start = std::chrono::steady_clock::now();
  body(on);
  require(cudaStreamSynchronize(on.stream));
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

/// Milliseconds of a call: the mean of `runs`.
double time(const lane& on, const std::function<void(const lane&)>& body, int runs) {
  const cudaStream_t compute = on.stream;
  cudaEvent_t begin = nullptr, end = nullptr;
  require(cudaEventCreate(&begin));
  require(cudaEventCreate(&end));
  require(cudaEventRecord(begin, compute));
  for (int i = 0; i < runs; ++i) body(on);
  require(cudaEventRecord(end, compute));
  require(cudaEventSynchronize(end));
  float ms = 0;
  require(cudaEventElapsedTime(&ms, begin, end));
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  return ms / runs;
}

struct variant {
  const char* name;
  std::function<void(const lane&)> body;
};

void run_layer(stand& first, stand& tuned, int tokens, int in, int out, bool epilogues) {
  const double tera = 2e-12 * tokens * in * out;
  std::vector<variant> variants;
  tuned.rewind();
  const auto count = [](int rows, int cols) { return static_cast<std::size_t>(rows) * cols; };
  const at x = tuned.take(count(tokens, in)), y = tuned.take(count(tokens, out)),
           before_in = tuned.take(count(tokens, in)), before_out = tuned.take(count(tokens, out)),
           w = tuned.take(count(out, in)), dw = tuned.take(count(out, in), 4), b = tuned.take(out),
           dx = tuned.take(count(tokens, in));
  const std::size_t n_in = count(tokens, in), n_out = count(tokens, out);
  const at res = before_out, dy = y;
  variants.push_back({"fwd", [=](const lane& on) { linear<bf16>(on, y, x, w, tokens, in, out); }});
  variants.push_back({"dx", [=](const lane& on) { linear_dx<bf16>(on, dx, dy, w, tokens, in, out, false); }});
  variants.push_back({"dw", [=](const lane& on) { linear_dw<bf16>(on, dw, dy, x, tokens, in, out, false); }});
  variants.push_back(
      {"dw+=", [=](const lane& on) { linear_dw<bf16>(on, dw, dy, x, tokens, in, out, true); }});
  if (epilogues) {
    variants.push_back(
        {"bias: fused", [=](const lane& on) { linear_bias<bf16>(on, y, x, w, b, tokens, in, out); }});
    variants.push_back({"bias: composed", [=](const lane& on) {
                          linear<bf16>(on, y, x, w, tokens, in, out);
                          bias<bf16>(on, y, y, b, tokens, out);
                        }});
    variants.push_back({"bias+add: fused", [=](const lane& on) {
                          linear_bias_add<bf16>(on, y, x, w, b, res, tokens, in, out);
                        }});
    variants.push_back({"bias+add: composed", [=](const lane& on) {
                          linear_bias<bf16>(on, y, x, w, b, tokens, in, out);
                          add<bf16>(on, y, y, res, n_out);
                        }});
    variants.push_back({"bias+gelu: fused", [=](const lane& on) {
                          linear_bias_gelu<bf16>(on, y, before_out, x, w, b, tokens, in, out);
                        }});
    variants.push_back({"bias+gelu: composed", [=](const lane& on) {
                          linear_bias<bf16>(on, before_out, x, w, b, tokens, in, out);
                          gelu<bf16>(on, y, before_out, n_out);
                        }});
    variants.push_back({"dx dgelu: fused", [=](const lane& on) {
                          linear_dx_gelu<bf16>(on, dx, dy, w, before_in, tokens, in, out);
                        }});
    variants.push_back({"dx dgelu: composed", [=](const lane& on) {
                          linear_dx<bf16>(on, dx, dy, w, tokens, in, out, false);
                          gelu_grad<bf16>(on, dx, dx, before_in, n_in);
                        }});
  }
  for (const variant& v : variants) {
    first_call(first.of()[0], v.body);
    const double tuning = first_call(tuned.of()[0], v.body);
    // The two alternate, because the clock drifts; the median of each counts.
    const int runs = std::clamp(static_cast<int>(10.0 / time(first.of()[0], v.body, 2)), 2, 200);
    double plain[5], best[5];
    for (int i = 0; i < 5; ++i) {
      plain[i] = time(first.of()[0], v.body, runs);
      best[i] = time(tuned.of()[0], v.body, runs);
    }
    std::sort(plain, plain + 5);
    std::sort(best, best + 5);
    std::printf("%6d %6d -> %6d  %-26s %8.3f ms %6.0f   tuned %8.3f ms %6.0f   (first call %4.0f ms)\n",
                tokens, in, out, v.name, plain[2], tera / plain[2] * 1e3, best[2], tera / best[2] * 1e3,
                tuning);
  }
  std::fflush(stdout);
}

int run() {
  stand first(16 * gibibyte, true), tuned(16 * gibibyte, false);
  std::printf("tokens  in -> out, heuristic's first: time, TFLOP/s of the product; tuned: the same\n");
  for (const int tokens : {65536, 4096})
    for (const auto& [in, out] : {std::pair{768, 2304}, {768, 768}, {768, 3072}, {3072, 768}, {768, 50304}})
      run_layer(first, tuned, tokens, in, out, out < 50304);
  for (const auto& [in, out] :
       {std::pair{4096, 6144}, {4096, 4096}, {4096, 28672}, {14336, 4096}, {4096, 128256}})
    run_layer(first, tuned, 16384, in, out, false);
  return 0;
}

}  // namespace
}  // namespace rankc::runtime::cuda

int main() { return rankc::cuda::run(); }
