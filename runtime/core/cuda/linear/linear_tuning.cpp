// SPDX-License-Identifier: Apache-2.0
// Finds the fastest of cuBLASLt's algorithms for a GEMM, on its own operands. It times the heuristics'
// proposals once each, then the variants of the best ones, then the tile orders of the best of those. The few
// finalists run in turns, because a GPU's clock drifts and falls under load. The lowest median wins, or an
// earlier candidate that is as fast. The first run, which loads the kernel, is not timed. The lane runs
// alone, with the other computing lanes idle; communication may be active.
#include "../device/check.hpp"
#include "../device/teardown.hpp"
#include "linear_plans.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace rankc::runtime::cuda {
namespace {

// The time limit for a shape: the longer of a fixed time and of this many runs of the fastest algorithm.
constexpr float search_milliseconds = 150;
constexpr float search_runs = 60;
constexpr float batch_milliseconds = 1;  // turn of one algorithm
constexpr std::size_t varied = 4;        // best candidates whose variants and orders are timed
constexpr float too_slow = 1.5f;         // a candidate slower than this multiple of the best is timed once
constexpr std::size_t finalists = 6;
constexpr float close = 1.06f;   // a finalist takes at most this multiple of the best
constexpr float equal = 1.005f;  // an algorithm is as fast up to this multiple of the best
constexpr std::size_t rounds = 9;
constexpr int checked_alignment = 16;  // bytes; below this, cuBLASLt does not tell if a variant can run

/// Runs a GEMM on its lane and times it. The runs use the real operands, because the fastest algorithm may
/// differ for copies of them. If d is c, `restore` resets d to its old value.
class stopwatch {
 public:
  stopwatch(const lane& on, const linear_plan& plan, const product_shape& shape, const product_operands& with)
      : on_(on), plan_(plan), shape_(shape), with_(with) {
    if (!shape.add || with.c != with.d) return;
    bytes_ = static_cast<std::size_t>(shape.m) * shape.n * (shape.out == CUDA_R_32F ? 4 : 2);
    ready_ = cudaMallocAsync(&saved_, bytes_, on.stream) == cudaSuccess &&
             cudaMemcpyAsync(saved_, with.d, bytes_, cudaMemcpyDeviceToDevice, on.stream) == cudaSuccess;
    if (!ready_) cudaGetLastError();  // out of memory: nothing is timed
  }
  ~stopwatch() {
    if (saved_ != nullptr) check_teardown(cudaFreeAsync(saved_, on_.stream), "cudaFreeAsync");
    for (cudaEvent_t e : {begin_, end_})
      if (e != nullptr) check_teardown(cudaEventDestroy(e), "cudaEventDestroy");
  }
  stopwatch(const stopwatch&) = delete;
  stopwatch& operator=(const stopwatch&) = delete;

  bool ready() {
    if (!ready_) return false;
    if (begin_ == nullptr) check(on_, cudaEventCreate(&begin_), "cudaEventCreate");
    if (end_ == nullptr) check(on_, cudaEventCreate(&end_), "cudaEventCreate");
    return true;
  }

  void restore() {
    if (ready_ && saved_ != nullptr)
      check(on_, cudaMemcpyAsync(with_.d, saved_, bytes_, cudaMemcpyDeviceToDevice, on_.stream),
            "linear: tuning");
  }

  /// The time of each of `runs` consecutive runs; infinite if cuBLASLt rejects the algorithm.
  /// Units: milliseconds.
  float time(const cublasLtMatmulAlgo_t& algorithm, int runs) {
    cudaStream_t compute = on_.stream;
    check(on_, cudaEventRecord(begin_, compute), "cudaEventRecord");
    for (int i = 0; i < runs; ++i)
      if (enqueue(on_, plan_, algorithm, shape_, with_) != CUBLAS_STATUS_SUCCESS) {
        cudaGetLastError();  // clears the error of a failed launch
        return std::numeric_limits<float>::infinity();
      }
    check(on_, cudaEventRecord(end_, compute), "cudaEventRecord");
    check(on_, cudaEventSynchronize(end_), "linear: tuning");
    float total = 0;
    check(on_, cudaEventElapsedTime(&total, begin_, end_), "cudaEventElapsedTime");
    spent_ += total;
    return total / static_cast<float>(runs);
  }
  float spent() const { return spent_; }

 private:
  const lane& on_;
  const linear_plan& plan_;
  const product_shape& shape_;
  const product_operands& with_;
  void* saved_ = nullptr;
  std::size_t bytes_ = 0;
  bool ready_ = true;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
  float spent_ = 0;
};

struct candidate {
  cublasLtMatmulAlgo_t algorithm;
  float each;
  std::size_t entered;  // number of earlier candidates
};

int runs_in_a_batch(float each) {
  return static_cast<int>(std::clamp(batch_milliseconds / each, 1.0f, 20.0f));
}

/// The candidates so far, the fastest first.
class field {
 public:
  explicit field(stopwatch& watch) : watch_(watch) {}

  /// Times the algorithms that are new, until the time limit is reached.
  void enter(const std::vector<cublasLtMatmulAlgo_t>& some) {
    for (const cublasLtMatmulAlgo_t& algorithm : some) {
      if (has(algorithm) || watch_.spent() > std::max(search_milliseconds, search_runs * least())) continue;
      if (!std::isfinite(watch_.time(algorithm, 1))) continue;  // loads the kernel
      float each = watch_.time(algorithm, 1);
      if (each < too_slow * least()) each = watch_.time(algorithm, runs_in_a_batch(each));
      all_.push_back({algorithm, each, all_.size()});
      std::stable_sort(all_.begin(), all_.end(),
                       [](const candidate& a, const candidate& b) { return a.each < b.each; });
    }
  }
  /// At most `most` candidates, the fastest first. Each takes at most `times` as long as the fastest one.
  std::vector<candidate> best(std::size_t most, float times) const {
    std::vector<candidate> some;
    for (const candidate& c : all_)
      if (some.size() < most && c.each <= times * least()) some.push_back(c);
    return some;
  }

 private:
  float least() const { return all_.empty() ? std::numeric_limits<float>::infinity() : all_.front().each; }
  bool has(const cublasLtMatmulAlgo_t& algorithm) const {
    return std::any_of(all_.begin(), all_.end(), [&](const candidate& c) {
      return std::memcmp(&c.algorithm, &algorithm, sizeof(algorithm)) == 0;
    });
  }
  stopwatch& watch_;
  std::vector<candidate> all_;
};

/// The candidate that was timed first, of those whose median over several rounds is close to the lowest. So
/// equally fast candidates always lead to the same choice.
candidate winner(stopwatch& watch, std::vector<candidate> finals) {
  std::sort(finals.begin(), finals.end(),
            [](const candidate& a, const candidate& b) { return a.entered < b.entered; });
  std::vector<std::array<float, rounds>> times(finals.size());
  for (std::size_t round = 0; round < rounds; ++round)
    for (std::size_t i = 0; i < finals.size(); ++i)
      times[i][round] = watch.time(finals[i].algorithm, runs_in_a_batch(finals[i].each));
  float least = std::numeric_limits<float>::infinity();
  for (std::size_t i = 0; i < finals.size(); ++i) {
    std::nth_element(times[i].begin(), times[i].begin() + rounds / 2, times[i].end());
    finals[i].each = times[i][rounds / 2];
    least = std::min(least, finals[i].each);
  }
  return *std::find_if(finals.begin(), finals.end(),
                       [&](const candidate& c) { return c.each <= equal * least; });
}

bool may_time(const lane& on) {
  if (on.of->about->deterministic) return false;  // every run must use the same algorithm
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  check(on, cudaStreamIsCapturing(on.stream, &capture), "cudaStreamIsCapturing");
  return capture == cudaStreamCaptureStatusNone;
}

}  // namespace

product_choice choose_algorithm(const lane& on, const linear_plan& plan, const product_shape& shape,
                                const product_operands& with) {
  const auto proposed = proposals(on, plan, shape);
  if (proposed.empty()) return {};
  if (!may_time(on)) return {proposed.front()};
  stopwatch watch(on, plan, shape, with);
  if (!watch.ready()) return {proposed.front()};
  for (const lane& other : on.of->all_lanes)
    if (other.computes() && &other != &on) check(on, cudaStreamSynchronize(other.stream), "linear: tuning");
  field all(watch);
  all.enter(proposed);
  if (shape.alignment >= checked_alignment) {
    for (const candidate& c : all.best(varied, too_slow)) all.enter(other_variants(on, plan, c.algorithm));
    for (const candidate& c : all.best(varied, too_slow)) all.enter(other_orders(on, plan, c.algorithm));
  }
  const auto finals = all.best(finalists, close);
  product_choice made;
  if (!finals.empty()) {
    const candidate best = winner(watch, finals);
    made = {best.algorithm, best.each};
  }
  watch.restore();
  return made;
}

}  // namespace rankc::runtime::cuda
