// SPDX-License-Identifier: Apache-2.0
// Graphs without a GPU. At each launch a thread repeats the marks of lanes and the kernel that blocks a GPU;
// the stream is busy until then. HANG_AT_RANK=r makes the first sum of rank r, or of all ranks, hang: its
// stream is busy until the communicator is aborted.
#include "../../../../../runtime/core/cuda/progress/injected.hpp"
#include "../../../../../runtime/core/cuda/progress/marks.hpp"
#include "../failures/fault.hpp"

#include <chrono>
#include <cstdlib>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

struct graph {
  std::vector<std::function<void(std::uint32_t launch)>> work;
  std::uint32_t launches = 0;
};

thread_local graph* captured = nullptr;
std::mutex mutex;
std::map<cudaStream_t, int> busy;
std::set<cudaStream_t> hung;

bool is_to_hang() {
  const char *at = std::getenv("HANG_AT_RANK"), *own = std::getenv("RANKC_RANK");
  return at != nullptr && std::string(at) == (own != nullptr ? own : "all");
}

}  // namespace

namespace rankc::runtime::cuda {

void store_mark(const lane& on, volatile std::uint32_t* to, std::uint32_t value) {
  const std::lock_guard lock(mutex);
  if (captured != nullptr) captured->work.push_back([=](std::uint32_t) { *to = value; });
  else if (!hung.contains(on.stream)) *to = value;
}

void hold_up_device(const lane&, std::uint32_t step, volatile unsigned* is_over, double seconds) {
  if (captured == nullptr) return;
  captured->work.push_back([=](std::uint32_t launch) {
    for (int passed = 0; launch == step && *is_over == 0 && passed < 1000 * seconds; ++passed)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
}

void test::fault_if_asked(rank&) {}

}  // namespace rankc::runtime::cuda

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode) {
  captured = new graph;
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t* made) {
  *made = reinterpret_cast<cudaGraph_t>(std::exchange(captured, nullptr));
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* made, cudaGraph_t from, unsigned long long) {
  *made = reinterpret_cast<cudaGraphExec_t>(from);
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t which, cudaStream_t stream) {
  auto* const g = reinterpret_cast<graph*>(which);
  const std::uint32_t launch = ++g->launches;
  {
    const std::lock_guard lock(mutex);
    ++busy[stream];
  }
  std::thread([=] {
    for (const auto& each : g->work) each(launch);
    const std::lock_guard lock(mutex);
    --busy[stream];
  }).detach();
  return cudaSuccess;
}

ncclResult_t ncclAllReduce(const void*, void*, std::size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t,
                           cudaStream_t stream) {
  const std::lock_guard lock(mutex);
  if (is_to_hang()) hung.insert(stream);
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t) {
  const std::lock_guard lock(mutex);
  hung.clear();
  return ncclSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  const std::lock_guard lock(mutex);
  return hung.contains(stream) || busy[stream] > 0 ? cudaErrorNotReady : cudaSuccess;
}

}  // extern "C"
