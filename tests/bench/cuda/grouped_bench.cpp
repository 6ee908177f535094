// SPDX-License-Identifier: Apache-2.0
// Speed of grouped GEMMs with expert weights at the sizes of Qwen3-30B-A3B (128 experts, 8 per token, 16384
// tokens) in bf16, compared with cuBLASLt's tuned GEMM of as many rows with one weight. Prints TFLOP/s of
// both, measured in turns. Operands are random, because zeros run faster.
#include <rankc/runtime/cuda/context.hpp>
#include <rankc/runtime/cuda/kernels.hpp>

#include "lone_rank.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <vector>

namespace rankc::runtime::cuda {
namespace {

constexpr std::size_t arena_bytes = std::size_t{8} << 30;
constexpr int experts = 128, rows = 131072;

void require(cudaError_t status) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "grouped_bench: %s\n", cudaGetErrorString(status));
  std::exit(1);
}

/// A rank with an arena of random bf16 numbers of about unit size; operands are taken from it one after the
/// other.
class stand {
 public:
  stand() : alone_(arena_bytes, false), context_(0, alone_.about, 0) {
    std::mt19937 engine(1);
    std::normal_distribution<float> draw;
    std::vector<bf16> numbers(std::size_t{1} << 22);
    for (bf16& x : numbers) x = __float2bfloat16_rn(draw(engine));
    const std::size_t block = numbers.size() * sizeof(bf16);
    for (std::size_t at = 0; at < arena_bytes; at += block)
      require(cudaMemcpy(of().arena + at, numbers.data(), block, cudaMemcpyHostToDevice));
    require(cudaEventCreate(&begin_));
    require(cudaEventCreate(&end_));
  }
  rank& of() { return context_.of(); }
  const lane& on() { return of()[0]; }
  /// Inputs come from the first half of the arena, which no call changes, and results from the second.
  at input(std::size_t bytes) { return take(inputs_, bytes, arena_bytes / 2); }
  at result(std::size_t bytes) { return take(results_, bytes, arena_bytes); }
  void rewind() {
    inputs_ = 0;
    results_ = arena_bytes / 2;
  }

  /// Milliseconds of a call: the mean of ten.
  float time(const std::function<void(const lane&)>& call) {
    require(cudaEventRecord(begin_, on().stream));
    for (int i = 0; i < 10; ++i) call(on());
    require(cudaEventRecord(end_, on().stream));
    require(cudaEventSynchronize(end_));
    float ms = 0;
    require(cudaEventElapsedTime(&ms, begin_, end_));
    return ms / 10;
  }

 private:
  at take(std::size_t& from, std::size_t bytes, std::size_t end) {
    const at where{from};
    from += (bytes + 255) / 256 * 256;
    if (from > end) std::exit(2);
    return where;
  }

  test::lone_rank alone_;
  std::size_t inputs_ = 0, results_ = 0;
  context context_;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

/// The number of rows of each expert.
struct deal {
  const char* name;
  std::vector<int> counts;
};

/// Draw each row's expert; `likely` experts are four times as probable as the others.
deal drawn(const char* name, int likely) {
  std::vector<double> weights(experts, 1.0);
  std::fill_n(weights.begin(), likely, 4.0);
  std::discrete_distribution<int> draw(weights.begin(), weights.end());
  std::mt19937 engine(2);
  deal made{name, std::vector<int>(experts, 0)};
  for (int r = 0; r < rows; ++r) ++made.counts[static_cast<std::size_t>(draw(engine))];
  return made;
}

float median(std::vector<float> times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

void run_layer(stand& s, const deal& d, int in, int out) {
  s.rewind();
  const auto bytes = [](std::size_t n, std::size_t m, std::size_t size) { return n * m * size; };
  const at x = s.input(bytes(rows, in, 2)), dy = s.input(bytes(rows, out, 2)),
           w = s.input(bytes(experts * out, in, 2)), offsets = s.result(bytes(2, experts, 4)),
           y = s.result(bytes(rows, out, 2)), dx = s.result(bytes(rows, in, 2)),
           dw = s.result(bytes(experts * out, in, 4));
  std::vector<std::int32_t> starts, ends;
  for (int row = 0; const int count : d.counts) {
    starts.push_back(row);
    ends.push_back(row += count);
  }
  starts.insert(starts.end(), ends.begin(), ends.end());
  require(cudaMemcpy(s.of().at<int>(offsets), starts.data(), starts.size() * 4, cudaMemcpyHostToDevice));

  using call = std::function<void(const lane&)>;
  struct {
    const char* name;
    call grouped, dense;
  } const products[]{
      {"forward",
       [&](const lane& on) { grouped_linear<bf16>(on, y, x, w, offsets, rows, in, out, experts, experts); },
       [&](const lane& on) { linear<bf16>(on, y, x, w, rows, in, out); }},
      {"input gradient",
       [&](const lane& on) {
         grouped_linear_dx<bf16>(on, dx, dy, w, offsets, rows, in, out, experts, experts);
       },
       [&](const lane& on) { linear_dx<bf16>(on, dx, dy, w, rows, in, out, false); }},
      {"weight gradient",
       [&](const lane& on) {
         grouped_linear_dw<bf16>(on, dw, dy, x, offsets, rows, in, out, experts, experts, false);
       },
       [&](const lane& on) { linear_dw<bf16>(on, dw, dy, x, rows, in, out, false); }},
      {"weight gradient, added",
       [&](const lane& on) {
         grouped_linear_dw<bf16>(on, dw, dy, x, offsets, rows, in, out, experts, experts, true);
       },
       [&](const lane& on) { linear_dw<bf16>(on, dw, dy, x, rows, in, out, true); }},
  };
  for (const auto& p : products) {
    p.dense(s.on());  // the first call tunes
    p.grouped(s.on());
    std::vector<float> grouped, dense;
    for (int i = 0; i < 5; ++i) {
      grouped.push_back(s.time(p.grouped));
      dense.push_back(s.time(p.dense));
    }
    const double giga = 2e-9 * rows * in * out, mine = median(grouped), theirs = median(dense);
    std::printf("%-9s %5d -> %5d  %-23s %7.3f ms %5.0f   dense %7.3f ms %5.0f   %5.2f\n", d.name, in, out,
                p.name, mine, giga / mine, theirs, giga / theirs, theirs / mine);
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace rankc::runtime::cuda

int main() {
  using namespace rankc::runtime;
  using namespace rankc::cuda;
  stand s;
  std::printf(
      "rows      in -> out  product, time, TFLOP/s, the same of the dense product, share of its speed\n");
  for (const deal& d :
       {deal{"even", std::vector<int>(experts, rows / experts)}, drawn("drawn", 0), drawn("uneven", 16)})
    for (const auto& [in, out] : {std::pair{2048, 1536}, {2048, 768}, {768, 2048}}) run_layer(s, d, in, out);
}
