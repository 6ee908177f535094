// SPDX-License-Identifier: Apache-2.0
// Makes and destroys what a rank owns on its device, and turns a step function into a graph.
#include <rankc/runtime/cuda/context.hpp>

#include "arena.hpp"
#include "attention_plans.hpp"
#include "check.hpp"
#include "linear_plans.hpp"
#include "trace.hpp"

#include <cmath>
#include <string>
#include <vector>

namespace rankc::cuda {
namespace {

/// Fill a rope table on the device: cosines (positions, dim / 2), then sines, worked out in f64.
void fill_rope(rank& r, const rope_table& table) {
  const chunks has{table.positions * r.about->cp, r.about->cp, r.row->cp};
  const int half = table.dim / 2;
  std::vector<float> values(static_cast<std::size_t>(table.positions) * half * 2);
  float* cosines = values.data();
  float* sines = cosines + values.size() / 2;
  for (int p = 0; p < table.positions; ++p)
    for (int i = 0; i < half; ++i) {
      const double angle = has.position(p) * std::pow(table.theta, -2.0 * i / table.dim);
      cosines[static_cast<std::size_t>(p) * half + i] = static_cast<float>(std::cos(angle));
      sines[static_cast<std::size_t>(p) * half + i] = static_cast<float>(std::sin(angle));
    }
  check(r,
        cudaMemcpy(r.at<float>(table.where), values.data(), values.size() * sizeof(float),
                   cudaMemcpyHostToDevice),
        "rope table: cudaMemcpy");
}

}  // namespace

hyperparameters factors_of(const step_input& in) {
  const double step = static_cast<double>(in.step);
  hyperparameters h;
  h.clip = static_cast<float>(in.clip);
  h.keep = static_cast<float>(1.0 - in.lr * in.weight_decay);
  h.beta1 = static_cast<float>(in.beta1);
  h.new1 = static_cast<float>(1.0 - in.beta1);
  h.beta2 = static_cast<float>(in.beta2);
  h.new2 = static_cast<float>(1.0 - in.beta2);
  h.step_size = static_cast<float>(in.lr / (1.0 - std::pow(in.beta1, step)));
  h.second_scale = static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(in.beta2, step)));
  h.eps = static_cast<float>(in.eps);
  h.lr = static_cast<float>(in.lr);
  h.weight_decay = static_cast<float>(in.weight_decay);
  h.momentum = static_cast<float>(in.momentum);
  h.nesterov = in.nesterov;
  h.step = static_cast<std::uint32_t>(in.step);
  h.rounding_seed = in.rounding_seed;
  return h;
}

context::context(int device, const description& about, int rank_index) : device_(device) {
  r_.about = &about;
  r_.index = rank_index;
  r_.row = &about.ranks[static_cast<std::size_t>(rank_index)];
  r_.where = &about.layouts[static_cast<std::size_t>(r_.row->pp)];
  r_.action = "install";
  try {
    check(r_, cudaSetDevice(device_), "cudaSetDevice");
    arena_ = std::make_unique<arena>(r_, r_.where->arena_bytes);
    r_.arena = arena_->data();
    hyperparameters* input = nullptr;
    check(r_, cudaMalloc(&input, sizeof(hyperparameters)), "hyperparameters: cudaMalloc");
    r_.input = input;
    check(r_, cudaMallocHost(&staged_, sizeof(hyperparameters)), "hyperparameters: cudaMallocHost");

    r_.all_lanes.resize(r_.where->lanes.size());
    join_.resize(r_.where->lanes.size());
    for (std::size_t i = 0; i < r_.all_lanes.size(); ++i) open(r_.all_lanes[i], static_cast<int>(i));
    check(r_, cudaEventCreateWithFlags(&fork_, cudaEventDisableTiming), "cudaEventCreateWithFlags");
    name_lanes(r_);
    r_.events.resize(static_cast<std::size_t>(r_.where->events), nullptr);
    for (cudaEvent_t& e : r_.events)
      check(r_, cudaEventCreateWithFlags(&e, cudaEventDisableTiming), "cudaEventCreateWithFlags");

    check(r_, cublasLtCreate(&r_.blas), "cublasLtCreate");
    clear_arena();
  } catch (...) {
    release();
    throw;
  }
  r_.action = "";
}

/// Communication goes first where it can run at all: what waits for it is on another rank.
void context::open(lane& on, int index) {
  on.of = &r_;
  on.index = index;
  const lane_row& row = r_.where->lanes[static_cast<std::size_t>(index)];
  int least = 0, greatest = 0;
  check(r_, cudaDeviceGetStreamPriorityRange(&least, &greatest), "cudaDeviceGetStreamPriorityRange");
  check(r_, cudaStreamCreateWithPriority(&on.stream, cudaStreamNonBlocking, row.computes ? least : greatest),
        "cudaStreamCreateWithPriority");
  check(r_, cudaEventCreateWithFlags(&join_[static_cast<std::size_t>(index)], cudaEventDisableTiming),
        "cudaEventCreateWithFlags");
  for (const lane_communicator& k : r_.row->links)
    if (k.lane == index) on.links.push_back({.over = k.over, .communicator = k.communicator});
  if (row.rounds) check(r_, cudaMalloc(&on.rounded, rounded_bytes), "what is rounded: cudaMalloc");
  if (!row.computes) return;
  check(r_, cudaMalloc(&on.workspace, workspace_bytes), "workspace: cudaMalloc");
  on.workspace_bytes = workspace_bytes;
  on.plans = new linear_plans;
  on.attention_graphs = make_attention_plans();
}

context::~context() { release(); }

void context::release() {
  cudaSetDevice(device_);
  for (const lane& each : r_.all_lanes) {
    destroy(each.attention_graphs);
    delete each.plans;
    cudaFree(each.workspace);
    cudaFree(each.rounded);
  }
  if (r_.blas != nullptr) cublasLtDestroy(r_.blas);
  for (cudaEvent_t e : r_.events)
    if (e != nullptr) cudaEventDestroy(e);
  if (fork_ != nullptr) cudaEventDestroy(fork_);
  for (cudaEvent_t e : join_)
    if (e != nullptr) cudaEventDestroy(e);
  for (const lane& each : r_.all_lanes)
    if (each.stream != nullptr) cudaStreamDestroy(each.stream);
  cudaFreeHost(staged_);
  cudaFree(const_cast<hyperparameters*>(r_.input));
  arena_.reset();
}

bool context::arena_is_registrable() const { return arena_->registrable(); }

void context::clear_arena() {
  check(r_, cudaMemset(r_.arena, 0, r_.where->arena_bytes), "arena: cudaMemset");
  for (const rope_table& table : r_.where->ropes) fill_rope(r_, table);
  check(r_, cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

void context::set_input(const step_input& in) { *staged_ = factors_of(in); }

void context::copy_input() {
  check(r_,
        cudaMemcpyAsync(const_cast<hyperparameters*>(r_.input), staged_, sizeof(hyperparameters),
                        cudaMemcpyHostToDevice, r_[0].stream),
        "hyperparameters: cudaMemcpyAsync");
}

void context::enqueue(void (*body)(rank&)) {
  cudaStream_t compute = r_[0].stream;
  begin_step(r_);
  check(r_, cudaEventRecord(fork_, compute), "cudaEventRecord");
  for (std::size_t i = 1; i < r_.all_lanes.size(); ++i)
    check(r_, cudaStreamWaitEvent(r_.all_lanes[i].stream, fork_, 0), "cudaStreamWaitEvent");
  body(r_);
  end_step(r_);
  for (std::size_t i = 1; i < r_.all_lanes.size(); ++i) {
    check(r_, cudaEventRecord(join_[i], r_.all_lanes[i].stream), "cudaEventRecord");
    check(r_, cudaStreamWaitEvent(compute, join_[i], 0), "cudaStreamWaitEvent");
  }
}

cudaGraphExec_t context::capture(const std::function<void()>& work) {
  cudaStream_t compute = r_[0].stream;
  check(r_, cudaStreamBeginCapture(compute, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  cudaGraph_t graph = nullptr;
  try {
    work();
  } catch (...) {
    cudaStreamEndCapture(compute, &graph);  // the first error is the one to tell
    if (graph != nullptr) cudaGraphDestroy(graph);
    throw;
  }
  check(r_, cudaStreamEndCapture(compute, &graph), "cudaStreamEndCapture");
  cudaGraphExec_t made = nullptr;
  const cudaError_t status = cudaGraphInstantiate(&made, graph, cudaGraphInstantiateFlagUseNodePriority);
  cudaGraphDestroy(graph);
  check(r_, status, "cudaGraphInstantiate");
  return made;
}

}  // namespace rankc::cuda
