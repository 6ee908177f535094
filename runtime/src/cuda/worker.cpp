// SPDX-License-Identifier: Apache-2.0
// The life of a worker thread, and one job of it.
#include "worker.hpp"

#include "check.hpp"
#include "injected.hpp"
#include "marks.hpp"
#include "warm_up.hpp"

#include <string>

namespace rankc::cuda {

int reporter_of(const description& about) {
  for (std::size_t i = 0; i < about.ranks.size(); ++i)
    if (about.ranks[i].pp == about.loss_at()) return static_cast<int>(i);
  return 0;
}

worker::worker(context& owner, const program& p, const batch& b, report& to)
    : context_(owner), program_(p), batch_(b), report_(to) {
  rank& r = context_.of();
  check(r, cudaSetDevice(context_.device()), "cudaSetDevice");
  check(r, cudaMallocHost(&results_, 2 * sizeof(float)), "results: cudaMallocHost");
  check(r, cudaMalloc(&shared_, 2 * sizeof(float)), "results: cudaMalloc");
  results_[0] = results_[1] = 0.0f;
  thread_ = std::thread([this] { serve(); });
}

worker::~worker() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  posted_.notify_one();
  thread_.join();
  cudaSetDevice(context_.device());
  for (cudaGraphExec_t graph : graphs_)
    if (graph != nullptr) cudaGraphExecDestroy(graph);
  tracer_.reset();
  cudaFree(shared_);
  cudaFreeHost(results_);
}

void worker::take_times(std::vector<traced>& into) {
  check(context_.of(), cudaSetDevice(context_.device()), "cudaSetDevice");
  tracer_->take(into);
}

void worker::start(const job& what) {
  {
    const std::lock_guard lock(mutex_);
    job_ = what;
    has_job_ = true;
    enqueueing_ = true;
  }
  posted_.notify_one();
}

void worker::serve() {
  cudaSetDevice(context_.device());
  for (;;) {
    job mine;
    {
      std::unique_lock lock(mutex_);
      posted_.wait(lock, [this] { return has_job_ || stop_; });
      if (stop_) return;
      mine = job_;
      has_job_ = false;
    }
    std::exception_ptr error;
    try {
      run(mine);
    } catch (...) {
      error = std::current_exception();
    }
    enqueueing_ = false;
    const std::lock_guard lock(report_.mutex);
    if (error != nullptr && report_.first == nullptr) report_.first = error;
    --report_.pending;
    report_.changed.notify_all();
  }
}

void worker::run(const job& what) {
  rank& r = context_.of();
  switch (what.todo) {
    case job::what::try_alone:
      r.alone = true;
      fill_with_noise(r[0]);
      try_out();
      r.alone = false;
      return;
    case job::what::try_together:
      return try_out();
    case job::what::capture:
      for (const kind k : kinds()) graphs_[static_cast<int>(k)] = context_.capture([&] { enqueue(k); });
      context_.clear_arena();
      return;
    case job::what::capture_traced: {
      if (graphs_[static_cast<int>(kind::traced)] != nullptr) return;
      tracer_ = std::make_unique<tracer>(r);
      const tracer::recording all(*tracer_);
      graphs_[static_cast<int>(kind::traced)] = context_.capture([&] { enqueue(kind::traced); });
      return;
    }
    case job::what::step:
      r.place->launch(static_cast<std::size_t>(what.which), what.step);
      check(r, cudaGraphLaunch(graphs_[static_cast<int>(what.which)], r[0].stream),
            "cudaGraphLaunch");
      enqueueing_ = false;
      wait_for_device([&] { look_at_place(what); });
      r.place->finish();
      if (what.which != kind::evaluate) ++r.steps_done;
  }
}

std::span<const kind> worker::kinds() const {
  static constexpr kind both[]{kind::train, kind::evaluate};
  return program_.about.trains ? std::span(both) : std::span(both).subspan(1);
}

/// All steps, not captured.
void worker::try_out() {
  for (const kind k : kinds()) {
    enqueue(k);
    wait_for_device();
  }
}

/// A step from its inputs in pinned memory to its results there: a graph holds all of it.
void worker::enqueue(kind what) {
  rank& r = context_.of();
  r.place->enqueue(static_cast<std::size_t>(what));
  cudaStream_t compute = r[0].stream;
  const auto pp = static_cast<std::size_t>(r.row->pp);
  if (what != kind::evaluate) context_.copy_input();
  const auto copy_in = [&](at to, const std::int32_t* from) {
    check(r, cudaMemcpyAsync(r.at<std::int32_t>(to), from, batch_.bytes, cudaMemcpyHostToDevice, compute),
          "batch: cudaMemcpyAsync");
  };
  if (r.where->reads_tokens) copy_in(r.where->tokens, batch_.tokens);
  if (r.where->reads_targets) copy_in(r.where->targets, batch_.targets);
  context_.enqueue(what == kind::evaluate ? program_.evaluate[pp] : program_.train[pp]);
  const auto copy = [&](float* to, const float* from, std::size_t count) {
    check(r, cudaMemcpyAsync(to, from, count * sizeof(float), cudaMemcpyDefault, compute),
          "results: cudaMemcpyAsync");
  };
  const bool share = r.world != nullptr;
  copy(share ? &shared_[0] : &results_[0], r.at<float>(r.where->loss), 1);
  if (r.about->trains) copy(share ? &shared_[1] : &results_[1], r.at<float>(r.where->norm), 1);
  if (!share) return;
  if (!r.alone)
    check(r, ncclBroadcast(shared_, shared_, 2, ncclFloat32, reporter_of(*r.about), r.world, compute),
          r.world, "results: ncclBroadcast");
  copy(results_, shared_, 2);
}

void worker::wait_for_device(const std::function<void()>& meanwhile) {
  rank& r = context_.of();
  for (unsigned polls = 1;; ++polls) {
    const cudaError_t status = cudaStreamQuery(r[0].stream);
    if (status == cudaSuccess) break;
    if (status != cudaErrorNotReady) fail_on_device(status);
    if (meanwhile) meanwhile();
    if (polls % 4096 == 0) look_at_communicators();
    std::this_thread::yield();
  }
  cudaGetLastError();  // "not ready" is remembered as an error
}

/// So that others see where the GPU is.
void worker::look_at_place(const job& what) {
  rank& r = context_.of();
  const std::uint64_t actions = r.place->follow();
  if (r.fault != nullptr && what.which == kind::train) r.fault->meet(r, what.step, actions);
}

/// CUDA gives the fault of one GPU to all GPUs of a process, and does not say whose it is.
void worker::fail_on_device(cudaError_t status) {
  const rank& r = context_.of();
  std::string text = std::string("the device, after the step was launched: ") + cudaGetErrorString(status);
  if (r.world == nullptr && r.about->world() > 1)
    text += "; the fault may be that of another GPU of this process: --launch processes tells them apart";
  fail(r, text);
}

void worker::look_at_communicators() {
  rank& r = context_.of();
  const std::lock_guard lock(report_.mutex);
  if (report_.first != nullptr) return;  // the engine is aborting them; the streams will end
  for (const lane& on : r.all_lanes)
    for (const lane_link& k : on.links) {
      if (k.nccl == nullptr) continue;
      ncclResult_t state = ncclSuccess;
      check(r, ncclCommGetAsyncError(k.nccl, &state), k.nccl, "ncclCommGetAsyncError");
      if (state == ncclRemoteError)
        throw failure(77, "rank " + std::to_string(r.index) + ": stopped, since another rank has failed");
      if (state != ncclInProgress) check(r, state, k.nccl, "communication under way");
    }
}

}  // namespace rankc::cuda
