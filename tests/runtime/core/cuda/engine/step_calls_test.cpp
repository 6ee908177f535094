// SPDX-License-Identifier: Apache-2.0
// The CUDA runtime calls of a step: one graph launch, and no allocation, copy, other launch or wait. The
// linker redirects the runtime's calls of these functions to the counters below (--wrap).
#include "../tables.hpp"

#include <doctest/doctest.h>

#include <atomic>

namespace {
std::atomic<int> graphs = 0, others = 0;
}

#define COUNTED(counter, name, parameters, arguments) \
  extern "C" cudaError_t __real_##name parameters;    \
  extern "C" cudaError_t __wrap_##name parameters {   \
    ++counter;                                        \
    return __real_##name arguments;                   \
  }
COUNTED(graphs, cudaGraphLaunch, (cudaGraphExec_t g, cudaStream_t s), (g, s))
COUNTED(others, cudaMalloc, (void** p, std::size_t n), (p, n))
COUNTED(others, cudaMallocHost, (void** p, std::size_t n), (p, n))
COUNTED(others, cudaHostAlloc, (void** p, std::size_t n, unsigned f), (p, n, f))
COUNTED(others, cudaFree, (void* p), (p))
COUNTED(others, cudaFreeHost, (void* p), (p))
COUNTED(others, cudaMemcpy, (void* to, const void* from, std::size_t n, cudaMemcpyKind k), (to, from, n, k))
COUNTED(others, cudaMemcpyAsync,
        (void* to, const void* from, std::size_t n, cudaMemcpyKind k, cudaStream_t s), (to, from, n, k, s))
COUNTED(others, cudaMemsetAsync, (void* p, int v, std::size_t n, cudaStream_t s), (p, v, n, s))
COUNTED(others, __cudaLaunchKernel, (cudaKernel_t k, dim3 g, dim3 b, void** a, std::size_t n, cudaStream_t s),
        (k, g, b, a, n, s))
COUNTED(others, cudaStreamBeginCapture, (cudaStream_t s, cudaStreamCaptureMode m), (s, m))
COUNTED(others, cudaStreamSynchronize, (cudaStream_t s), (s))
COUNTED(others, cudaDeviceSynchronize, (), ())

namespace rankc::runtime::cuda::test {
namespace {

int bodies = 0;

void counted_step(rank& r) {
  ++bodies;
  begin(r[compute], "F0");
  sum_squares<float>(r[compute], loss_at, weights, all_parameters, false);
  all_reduce<float>(r[compute], over::dp, {0, "loss"}, loss_at, 1);
  sum_squares<float>(r[compute], norm_at, weights, all_parameters, false);
}

TEST_CASE("every step is one graph launch, the first included") {
  tables t(1, 1);
  t.connect("dp", {0}, {compute}, over::dp);
  void (*const body[])(rank&) = {counted_step};
  const auto e = install({.about = t.about, .train = body, .evaluate = body});
  CHECK(others > 0);  // the test's counters intercept the calls
  const int enqueued = bodies;
  CHECK(enqueued > 0);
  std::size_t free_before = 0, free_after = 0, total = 0;
  REQUIRE(cudaMemGetInfo(&free_before, &total) == cudaSuccess);
  graphs = others = 0;
  for (int step = 1; step <= 10; ++step) {
    e->step({.lr = 0.1 * step, .weight_decay = 0, .clip = 0, .beta1 = 0, .beta2 = 0, .eps = 1, .step = step});
    CHECK(graphs == 2 * step - 1);
    e->evaluate();
    CHECK(graphs == 2 * step);
    CHECK(others == 0);
  }
  CHECK(bodies == enqueued);
  REQUIRE(cudaMemGetInfo(&free_after, &total) == cudaSuccess);
  CHECK(free_after == free_before);
}

}  // namespace
}  // namespace rankc::runtime::cuda::test
