// SPDX-License-Identifier: Apache-2.0
// Which of cuBLASLt's algorithms does a product: its heuristics propose up to 24, and the fastest on the very
// operands is kept. They are timed in turns, for a GPU's clock drifts as it warms up. Time is taken on the
// lane alone, with the other lanes that compute at rest: ranks tune side by side, and messages under way are not waited
// for.
#include "check.hpp"
#include "linear_plans.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace rankc::cuda {
namespace {

constexpr int most_proposals = 24;
constexpr float milliseconds_per_shape = 150;
constexpr float runs_per_shape = 60;  // of the fastest, where these take longer: a single measurement misleads
constexpr float milliseconds_per_batch = 2;
constexpr float hopeless = 1.5f;   // times the best so far
constexpr float worth_it = 0.99f;  // times a proposal that ranks before it
constexpr int rounds = 4;

/// cuBLASLt's preference object, for the length of one request.
struct preference {
  cublasLtMatmulPreference_t of = nullptr;
  explicit preference(const lane& on) {
    check(on, cublasLtMatmulPreferenceCreate(&of), "cublasLtMatmulPreferenceCreate");
  }
  preference(const preference&) = delete;
  preference& operator=(const preference&) = delete;
  ~preference() { cublasLtMatmulPreferenceDestroy(of); }
  template <class V>
  void set(const lane& on, cublasLtMatmulPreferenceAttributes_t attribute, V value) {
    check(on, cublasLtMatmulPreferenceSetAttribute(of, attribute, &value, sizeof(value)),
          "cublasLtMatmulPreferenceSetAttribute");
  }
};

/// Partial sums of a split k meet in f32, in a fixed order, or k is not split: never in the type of d.
bool sums_in_f32(const cublasLtMatmulAlgo_t& algorithm) {
  std::uint32_t scheme = CUBLASLT_REDUCTION_SCHEME_MASK;
  std::size_t written = 0;
  if (cublasLtMatmulAlgoConfigGetAttribute(&algorithm, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, &scheme,
                                           sizeof(scheme), &written) != CUBLAS_STATUS_SUCCESS)
    return false;
  return scheme == CUBLASLT_REDUCTION_SCHEME_NONE || scheme == CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
}

/// The heuristics' proposals, the most promising first.
std::vector<cublasLtMatmulAlgo_t> proposals(const lane& on, const linear_plan& plan, const product_shape& shape,
                                            int most) {
  preference wish(on);
  wish.set(on, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{on.workspace_bytes});
  wish.set(on, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
           static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  const auto alignment = static_cast<std::uint32_t>(shape.alignment);
  for (const auto attribute :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    wish.set(on, attribute, alignment);
  std::vector<cublasLtMatmulHeuristicResult_t> results(static_cast<std::size_t>(most));
  int found = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
      on.of->blas, plan.description, plan.a, plan.b, plan.d, plan.d, wish.of, most, results.data(), &found);
  // An epilogue may be unknown for these types: NOT_SUPPORTED, or INVALID_VALUE for its attributes.
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE) return {};
  check(on, status, "cublasLtMatmulAlgoGetHeuristic");
  std::vector<cublasLtMatmulAlgo_t> usable;
  for (int i = 0; i < found; ++i)
    if (results[i].state == CUBLAS_STATUS_SUCCESS && sums_in_f32(results[i].algo))
      usable.push_back(results[i].algo);
  return usable;
}

/// Runs a product on its lane and says how long it took. Where d is c, it is put back in the end:
/// an algorithm that is the fastest out of place need not be so in place.
class stopwatch {
 public:
  stopwatch(const lane& on, const linear_plan& plan, const product_shape& shape, const product_operands& with)
      : on_(on), plan_(plan), shape_(shape), with_(with) {
    if (!shape.add || with.c != with.d) return;
    bytes_ = static_cast<std::size_t>(shape.m) * shape.n * (shape.out == CUDA_R_32F ? 4 : 2);
    ready_ =
        cudaMallocAsync(&saved_, bytes_, on.stream) == cudaSuccess &&
        cudaMemcpyAsync(saved_, with.d, bytes_, cudaMemcpyDeviceToDevice, on.stream) == cudaSuccess;
    if (!ready_) cudaGetLastError();  // no room: nothing is timed
  }
  ~stopwatch() {
    if (ready_ && saved_ != nullptr)
      cudaMemcpyAsync(with_.d, saved_, bytes_, cudaMemcpyDeviceToDevice, on_.stream);
    if (saved_ != nullptr) cudaFreeAsync(saved_, on_.stream);
    cudaEventDestroy(begin_);
    cudaEventDestroy(end_);
  }
  stopwatch(const stopwatch&) = delete;
  stopwatch& operator=(const stopwatch&) = delete;

  bool ready() {
    if (!ready_) return false;
    if (begin_ == nullptr) check(on_, cudaEventCreate(&begin_), "cudaEventCreate");
    if (end_ == nullptr) check(on_, cudaEventCreate(&end_), "cudaEventCreate");
    return true;
  }

  /// Milliseconds of each of `runs` runs one after another; infinite where cuBLASLt refuses.
  float time(const cublasLtMatmulAlgo_t& algorithm, int runs) {
    cudaStream_t compute = on_.stream;
    check(on_, cudaEventRecord(begin_, compute), "cudaEventRecord");
    for (int i = 0; i < runs; ++i)
      if (enqueue(on_, plan_, algorithm, shape_, with_) != CUBLAS_STATUS_SUCCESS)
        return std::numeric_limits<float>::infinity();
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
  float each;  // the least so far
};

bool may_time(const lane& on) {
  if (on.of->about->deterministic) return false;  // every run shall take the same algorithm
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  check(on, cudaStreamIsCapturing(on.stream, &capture), "cudaStreamIsCapturing");
  return capture == cudaStreamCaptureStatusNone;
}

}  // namespace

std::optional<cublasLtMatmulAlgo_t> choose_algorithm(const lane& on, const linear_plan& plan,
                                                     const product_shape& shape, const product_operands& with) {
  const auto proposed = proposals(on, plan, shape, most_proposals);
  if (proposed.empty()) return std::nullopt;
  if (proposed.size() == 1 || !may_time(on)) return proposed.front();
  stopwatch watch(on, plan, shape, with);
  if (!watch.ready()) return proposed.front();
  for (const lane& other : on.of->all_lanes)
    if (other.computes() && &other != &on) check(on, cudaStreamSynchronize(other.stream), "linear: tuning");
  std::vector<candidate> candidates;
  float least = std::numeric_limits<float>::infinity();
  const auto spent = [&] { return watch.spent() > std::max(milliseconds_per_shape, runs_per_shape * least); };
  for (const cublasLtMatmulAlgo_t& algorithm : proposed) {
    if (spent()) break;
    float each = watch.time(algorithm, 1);  // loads the kernel too, which counts where a product is short
    if (each < milliseconds_per_batch) each = watch.time(algorithm, 1);
    if (!(each < hopeless * least)) continue;
    candidates.push_back({algorithm, each});
    least = std::min(least, each);
  }
  if (candidates.empty()) return std::nullopt;
  for (int round = 0; round < rounds; ++round)
    for (candidate& c : candidates) {
      if (spent() || c.each > hopeless * least) continue;
      const int runs = static_cast<int>(std::clamp(milliseconds_per_batch / c.each, 1.0f, 20.0f));
      c.each = std::min(c.each, watch.time(c.algorithm, runs));
      least = std::min(least, c.each);
    }
  const candidate* best = &candidates.front();
  for (const candidate& c : candidates)
    if (c.each < worth_it * best->each) best = &c;
  return best->algorithm;
}

}  // namespace rankc::cuda
