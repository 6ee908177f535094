// SPDX-License-Identifier: Apache-2.0
// The graphs of a rank, and one job with them.
#include "driver.hpp"

#include "../device/check.hpp"
#include "../device/teardown.hpp"
#include "../communication/check_collectives.hpp"
#include "../progress/injected.hpp"
#include "../progress/marks.hpp"
#include "warm_up.hpp"

#include <chrono>
#include <string>
#include <thread>
#include <utility>

namespace rankc::runtime::cuda {

driver::driver(context& owner, const program& p, const batch& b, report& to, cudaStream_t launch_on)
    : context_(owner),
      program_(p),
      batch_(b),
      report_(to),
      launch_on_(launch_on != nullptr ? launch_on : owner.of()[0].stream) {
  check(context_.of(), cudaSetDevice(context_.device()), "cudaSetDevice");
  results_ = reinterpret_cast<float*>(context_.more_pinned(2 * sizeof(float), "results"));
  shared_ = reinterpret_cast<float*>(context_.more_on_device(2 * sizeof(float), "results"));
  results_[0] = results_[1] = 0.0f;
}

driver::~driver() {
  check_teardown(cudaSetDevice(context_.device()), "cudaSetDevice");
  for (cudaGraphExec_t graph : graphs_)
    if (graph != nullptr) check_teardown(cudaGraphExecDestroy(graph), "cudaGraphExecDestroy");
}

void driver::take_times(std::vector<traced>& into) {
  check(context_.of(), cudaSetDevice(context_.device()), "cudaSetDevice");
  tracer_->take(into);
}

void driver::run(const job& what) {
  rank& r = context_.of();
  switch (what.todo) {
    case job::what::check_collectives: {
      collective_check numbers(context_);
      numbers.enqueue();
      wait_in_install();
      return numbers.judge();
    }
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
      cudaGraphExec_t& graph = graphs_[static_cast<int>(kind::traced)];
      if (graph != nullptr && by_calls_ == what.by_calls) return;
      if (graph != nullptr)
        check(r, cudaGraphExecDestroy(std::exchange(graph, nullptr)), "cudaGraphExecDestroy");
      if (tracer_ == nullptr) tracer_ = std::make_unique<tracer>(r);
      by_calls_ = what.by_calls;
      const tracer::recording all(*tracer_, by_calls_);
      graph = context_.capture([&] { enqueue(kind::traced); });
      return;
    }
    case job::what::step:
      if (r.place != nullptr) r.place->launch(static_cast<std::size_t>(what.which), what.step);
      check(r, cudaGraphLaunch(graphs_[static_cast<int>(what.which)], launch_on_), "cudaGraphLaunch");
      enqueueing_ = false;
      wait_for(launch_on_, [&] { look_at_place(what); });
      if (r.place != nullptr) r.place->finish();
      if (what.which != kind::evaluate) ++r.steps_done;
  }
}

std::span<const kind> driver::kinds() const {
  static constexpr kind both[]{kind::train, kind::evaluate};
  return program_.about.trains ? std::span(both) : std::span(both).subspan(1);
}

/// Runs all steps without a capture.
void driver::try_out() {
  for (const kind k : kinds()) {
    enqueue(k);
    wait_in_install();
  }
}

/// Enqueues a step, from its inputs in pinned memory to its results there. A graph contains all of it.
void driver::enqueue(kind what) {
  rank& r = context_.of();
  if (r.place != nullptr) r.place->enqueue(static_cast<std::size_t>(what));
  r.evaluates = what == kind::evaluate;
  cudaStream_t compute = r[0].stream;
  const auto pp = static_cast<std::size_t>(r.row->pp);
  if (what != kind::evaluate) context_.copy_input();
  const auto copy_in = [&](at to, const void* from, std::size_t bytes) {
    check(r, cudaMemcpyAsync(r.at<std::byte>(to), from, bytes, cudaMemcpyHostToDevice, compute),
          "batch: cudaMemcpyAsync");
  };
  if (r.where->reads_tokens) copy_in(r.where->tokens, batch_.tokens, batch_.bytes);
  if (r.where->reads_targets) copy_in(r.where->targets, batch_.targets, batch_.bytes);
  if (r.where->reads_starts) copy_in(r.where->starts, batch_.starts, batch_.bytes_of_starts);
  for (const input_row& input : r.where->inputs)
    for (const pinned_input& given : batch_.inputs)
      if (given.name == input.name) copy_in(input.where, given.from, given.bytes);
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

void driver::wait_for(cudaStream_t stream, const std::function<void()>& meanwhile) {
  for (unsigned polls = 1;; ++polls) {
    const cudaError_t status = cudaStreamQuery(stream);
    if (status == cudaSuccess) break;
    if (status != cudaErrorNotReady) fail_on_device(status);
    if (meanwhile) meanwhile();
    if (polls % 4096 == 0) look_at_communicators();
    std::this_thread::yield();
  }
  cudaGetLastError();  // clears "not ready", which CUDA remembers as an error
}

/// Waits for the work of a phase of the install. A collective that does not end reaches a deadline.
void driver::wait_in_install() {
  rank& r = context_.of();
  if (r.place != nullptr) r.place->run_enqueued();
  const auto until = std::chrono::steady_clock::now() + patience_;
  wait_for(r[0].stream, [&] {
    if (patience_.count() == 0 || std::chrono::steady_clock::now() < until) return;
    fail(r,
         "RC5147: the work of the install does not end within {} s (RANKC_EXCHANGE_TIMEOUT); under way: {}; "
         "check that the GPUs and the network of these ranks work (NCCL_DEBUG=INFO shows the network that "
         "NCCL uses)",
         patience_.count(), lanes_text());
  });
}

std::string driver::lanes_text() const {
  const rank& r = context_.of();
  return r.place != nullptr ? r.place->under_way() : "unknown";
}

/// Publishes the position of the GPU for other threads.
void driver::look_at_place(const job& what) {
  rank& r = context_.of();
  if (r.place == nullptr) return;
  const std::uint64_t actions = r.place->follow();
  if (r.fault != nullptr && what.which == kind::train) r.fault->meet(r, what.step, actions);
}

/// CUDA reports the fault of one GPU to all GPUs of a process, without naming it.
void driver::fail_on_device(cudaError_t status) {
  const rank& r = context_.of();
  if (r.world == nullptr && r.about->world() > 1)
    fail(r,
         "RC5125: a GPU of this process failed after the step was launched, and CUDA does not say which one "
         "(--launch processes tells them apart): {}; under way on this rank's GPU: {}",
         cudaGetErrorString(status), lanes_text());
  fail(r, "RC5126: the GPU failed after the step was launched: {}; under way: {}", cudaGetErrorString(status),
       lanes_text());
}

void driver::look_at_communicators() {
  rank& r = context_.of();
  const std::lock_guard lock(report_.mutex);
  if (report_.first != nullptr) return;  // the engine is aborting them; the streams will end
  for (const lane& on : r.all_lanes)
    for (const lane_link& k : on.links) {
      if (k.nccl == nullptr) continue;
      ncclResult_t state = ncclSuccess;
      check(r, ncclCommGetAsyncError(k.nccl, &state), k.nccl, "ncclCommGetAsyncError");
      if (state == ncclRemoteError)
        throw failure(77, "RC5127: rank {} was stopped, because another rank has failed", r.index);
      if (state != ncclSuccess && state != ncclInProgress)
        check(r, state, k.nccl,
              std::string("communication on lane ") + on.name() + " by " +
                  name_of(r.about->communicators[static_cast<std::size_t>(k.communicator)]) +
                  " (under way: " + lanes_text() + ")");
    }
}

}  // namespace rankc::runtime::cuda
