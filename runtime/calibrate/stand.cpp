// SPDX-License-Identifier: Apache-2.0
#include "stand.hpp"

#include "../core/cuda/device/teardown.hpp"
#include <rankc/runtime/engine.hpp>

#include <algorithm>
#include <chrono>
#include <random>
#include <thread>
#include <vector>

namespace rankc::calibrate {

using runtime::cuda::check_teardown;

void require(cudaError_t status) {
  if (status != cudaSuccess)
    throw runtime::failure(70, "RC5203: a call of CUDA failed: {}", cudaGetErrorString(status));
}

namespace {

/// A program of one rank with an arena and no parameters.
runtime::description about(const runtime::layout& layout, const runtime::rank_row& row) {
  runtime::description d{};
  d.interface_version = runtime::interface_version;
  d.name = "a kernel";
  d.pp = d.dp = d.tp = 1;
  d.layouts = {&layout, 1};
  d.ranks = {&row, 1};
  return d;
}

/// A CUDA graph of consecutive calls.
class repeated {
 public:
  repeated(const lane& on, int times, const std::function<void(int)>& each) : stream_(on.stream) {
    require(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < times; ++i) each(i);
    require(cudaStreamEndCapture(stream_, &graph_));
    require(cudaGraphInstantiate(&made_, graph_));
  }
  ~repeated() {
    check_teardown(cudaGraphExecDestroy(made_), "cudaGraphExecDestroy");
    check_teardown(cudaGraphDestroy(graph_), "cudaGraphDestroy");
  }
  repeated(const repeated&) = delete;
  repeated& operator=(const repeated&) = delete;
  void launch() { require(cudaGraphLaunch(made_, stream_)); }

 private:
  cudaStream_t stream_;
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t made_ = nullptr;
};

}  // namespace

stand::stand()
    : layout_{[] {
        runtime::layout l{};
        l.arena_bytes = arena_bytes;
        l.lanes = compute;
        return l;
      }()},
      about_(about(layout_, row_)),
      context_(0, about_, 0) {
  require(cudaEventCreate(&begin_));
  require(cudaEventCreate(&end_));
  fill();
}

stand::~stand() {
  check_teardown(cudaEventDestroy(begin_), "cudaEventDestroy");
  check_teardown(cudaEventDestroy(end_), "cudaEventDestroy");
}

/// Random bf16 of about unit size: zeros would run faster.
void stand::fill() {
  std::mt19937 engine(1);
  std::normal_distribution<float> draw;
  std::vector<bf16> numbers(std::size_t{1} << 22);
  for (bf16& x : numbers) x = __float2bfloat16_rn(draw(engine));
  const std::size_t block = numbers.size() * sizeof(bf16);
  std::byte* arena = context_.of().arena;
  require(cudaMemcpy(arena, numbers.data(), block, cudaMemcpyHostToDevice));
  for (std::size_t at = block; at < arena_bytes; at += block)
    require(cudaMemcpy(arena + at, arena, block, cudaMemcpyDeviceToDevice));
  require(cudaDeviceSynchronize());
}

stand::loaded stand::run(const call& one, double warm, double timed) {
  operands first(0);
  one(on(), first);  // the first call loads and tunes
  if (first.used() > arena_bytes)
    throw runtime::failure(70, "RC5204: the operands are larger than the arena");
  require(cudaStreamSynchronize(on().stream));
  const std::size_t sets =
      std::clamp<std::size_t>(rotated / std::max<std::size_t>(first.used(), 1) + 1, 1, 64);
  const auto each = [&](int i) {
    operands next(static_cast<std::size_t>(i) % std::min(sets, arena_bytes / first.used()) * first.used());
    one(on(), next);
  };
  const int calls = static_cast<int>(std::clamp<std::size_t>(sets, 4, 64));
  repeated graph(on(), calls, each);
  const auto launch_for = [&](int launches) {
    float ms = 0;
    require(cudaEventRecord(begin_, on().stream));
    for (int i = 0; i < launches; ++i) graph.launch();
    require(cudaEventRecord(end_, on().stream));
    require(cudaEventSynchronize(end_));
    require(cudaEventElapsedTime(&ms, begin_, end_));
    return ms / 1000.0;
  };
  launch_for(1);
  const double once = launch_for(1);
  std::this_thread::sleep_for(std::chrono::milliseconds(40));
  launch_for(std::max(1, static_cast<int>(warm / once)));
  const int launches = std::max(1, static_cast<int>(timed / once));
  const double before = power_.read(), took = launch_for(launches);
  return {took / launches / calls, (power_.read() - before) / took};
}

cudaDeviceProp stand::device() const {
  cudaDeviceProp properties{};
  require(cudaGetDeviceProperties(&properties, 0));
  return properties;
}

}  // namespace rankc::calibrate
