// SPDX-License-Identifier: Apache-2.0
// Creates and destroys a rank's resources on its device, and turns a step function into a graph.
#include <rankc/runtime/cuda/context.hpp>
#include <rankc/runtime/rope_angles.hpp>

#include "../device/arena.hpp"
#include "../attention/attention_plans.hpp"
#include "../device/check.hpp"
#include "../device/teardown.hpp"
#include "../linear/linear_plans.hpp"
#include "../linear/product_choices.hpp"
#include "../progress/trace.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace rankc::runtime::cuda {
namespace {

/// Fills a rope table on the device.
void fill_rope(rank& r, const rope_table& table) {
  std::vector<float> values(size_of(table));
  fill_angles(values.data(), table, r.about->chunks_of_table(table, *r.row));
  check(r,
        cudaMemcpy(r.at<float>(table.where), values.data(), values.size() * sizeof(float),
                   cudaMemcpyHostToDevice),
        "rope table: cudaMemcpy");
}

}  // namespace

context::context(int device, const description& about, int rank_index, const memory_sources& sources,
                 std::shared_ptr<product_choices> choices)
    : device_(device),
      sources_(sources),
      machine_(std::make_unique<product_machine>(product_machine::of(device))),
      choices_(choices != nullptr ? std::move(choices) : std::make_shared<product_choices>()) {
  r_.machine = machine_.get();
  r_.choices = choices_.get();
  r_.about = &about;
  r_.index = rank_index;
  r_.row = &about.ranks[static_cast<std::size_t>(rank_index)];
  r_.where = &about.layouts[static_cast<std::size_t>(r_.row->pp)];
  r_.action = "install";
  try {
    check(r_, cudaSetDevice(device_), "cudaSetDevice");
    arena_ = std::make_unique<arena>(r_, r_.where->arena_bytes, sources_.device);
    r_.arena = arena_->data();
    r_.input = reinterpret_cast<hyperparameters*>(more_on_device(sizeof(hyperparameters), "hyperparameters"));
    staged_ = reinterpret_cast<hyperparameters*>(more_pinned(sizeof(hyperparameters), "hyperparameters"));

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

/// Communication streams have the higher priority, because other ranks wait for communication.
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
  check(r_, cudaEventCreateWithFlags(&on.reached, cudaEventDisableTiming), "cudaEventCreateWithFlags");
  for (const lane_communicator& k : r_.row->links)
    if (k.lane == index) on.links.push_back({.over = k.over, .communicator = k.communicator});
  if (row.rounds) on.rounded = reinterpret_cast<bf16*>(more_on_device(rounded_bytes, "what is rounded"));
  if (!row.computes) return;
  on.workspace = more_on_device(workspace_bytes, "workspace");
  on.workspace_bytes = workspace_bytes;
  on.plans = new linear_plans;
  on.attention_graphs = make_attention_plans();
  const auto is_over_tp = [](const lane_link& k) { return k.over == over::tp; };
  if (std::none_of(on.links.begin(), on.links.end(), is_over_tp)) return;
  on.copies = new lane{.of = &r_, .index = index};
  check(r_, cudaStreamCreateWithPriority(&on.copies->stream, cudaStreamNonBlocking, greatest),
        "cudaStreamCreateWithPriority");
  check(r_, cudaEventCreateWithFlags(&on.copies->reached, cudaEventDisableTiming),
        "cudaEventCreateWithFlags");
}

context::~context() { release(); }

void context::release() {
  check_teardown(cudaSetDevice(device_), "cudaSetDevice");
  for (const lane& each : r_.all_lanes) {
    destroy(each.attention_graphs);
    delete each.plans;
  }
  if (r_.blas != nullptr) check_teardown(cublasLtDestroy(r_.blas), "cublasLtDestroy");
  for (cudaEvent_t e : r_.events)
    if (e != nullptr) check_teardown(cudaEventDestroy(e), "cudaEventDestroy");
  if (fork_ != nullptr) check_teardown(cudaEventDestroy(fork_), "cudaEventDestroy");
  for (cudaEvent_t e : join_)
    if (e != nullptr) check_teardown(cudaEventDestroy(e), "cudaEventDestroy");
  const auto close = [](const lane& each) {
    if (each.reached != nullptr) check_teardown(cudaEventDestroy(each.reached), "cudaEventDestroy");
    if (each.stream != nullptr) check_teardown(cudaStreamDestroy(each.stream), "cudaStreamDestroy");
  };
  for (const lane& each : r_.all_lanes) {
    if (each.copies != nullptr) close(*each.copies);
    delete each.copies;
    close(each);
  }
  more_.clear();
  arena_.reset();
}

std::byte* context::more(std::pmr::memory_resource* from, std::size_t bytes, const char* what) {
  return more_.emplace_back(r_, from, bytes, what).as<std::byte>();
}
std::byte* context::more_on_device(std::size_t bytes, const char* what) {
  return more(sources_.device != nullptr ? sources_.device : device_memory(), bytes, what);
}
std::byte* context::more_pinned(std::size_t bytes, const char* what) {
  return more(sources_.pinned != nullptr ? sources_.pinned : pinned_memory(), bytes, what);
}

bool context::arena_is_registrable() const { return arena_->registrable(); }

void context::clear_arena() {
  check(r_, cudaMemset(r_.arena, 0, r_.where->arena_bytes), "arena: cudaMemset");
  for (const rope_table& table : r_.where->ropes) fill_rope(r_, table);
  check(r_, cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

void context::set_input(const step_input& in) { *staged_ = factors_of<float>(in); }

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
    // After `work` has failed the capture is invalid, and its end fails too.
    static_cast<void>(cudaStreamEndCapture(compute, &graph));
    if (graph != nullptr) check_teardown(cudaGraphDestroy(graph), "cudaGraphDestroy");
    throw;
  }
  check(r_, cudaStreamEndCapture(compute, &graph), "cudaStreamEndCapture");
  cudaGraphExec_t made = nullptr;
  const cudaError_t status = cudaGraphInstantiate(&made, graph, cudaGraphInstantiateFlagUseNodePriority);
  check_teardown(cudaGraphDestroy(graph), "cudaGraphDestroy");
  check(r_, status, "cudaGraphInstantiate");
  return made;
}

}  // namespace rankc::runtime::cuda
