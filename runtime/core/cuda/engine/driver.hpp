// SPDX-License-Identifier: Apache-2.0
// Drives one rank on the calling thread: tries the steps out, captures them, launches the graph of a step and
// waits until the device is done.
#pragma once
#include "../progress/trace.hpp"
#include <rankc/runtime/cuda/context.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace rankc::runtime::cuda {

/// The state of a job that the drivers of one engine share. `mutex` guards all members but `changed`.
struct report {
  std::mutex mutex;
  std::condition_variable changed;
  int pending = 0;           // drivers that have not finished the job
  std::exception_ptr first;  // the first failure; communicators may be destroyed once it is set
};

/// The values of an input that the model declares, for all microbatches, in pinned memory.
struct pinned_input {
  std::string_view name;
  const std::byte* from;
  std::size_t bytes;
};

/// Tokens, targets and declared inputs of a data-parallel coordinate, in pinned memory. Pointers are null
/// before they are set.
struct batch {
  const std::int32_t *tokens = nullptr, *targets = nullptr;
  std::size_t bytes = 0;                 // bytes of tokens, and of targets
  const std::int32_t* starts = nullptr;  // starts of documents, in whole sequences; null: no documents
  std::size_t bytes_of_starts = 0;
  std::vector<pinned_input> inputs = {};
};

/// A graph of a step. `train` and `evaluate` are captured in the install, `traced` before the first traced
/// step, by actions or by calls.
enum class kind { train, evaluate, traced };

/// The work of a driver: a phase of the install, a capture, or a step.
struct job {
  enum class what { check_collectives, try_alone, try_together, capture, capture_traced, step } todo;
  kind which = kind::train;
  std::int64_t step = 0;  // its number, or the previous step's
  bool by_calls = false;  // a traced step is timed call by call, not action by action
};

class driver {
 public:
  /// Graphs are launched on `launch_on`; null: the stream of lane 0.
  driver(context&, const program&, const batch&, report&, cudaStream_t launch_on = nullptr);
  ~driver();
  driver(const driver&) = delete;
  driver& operator=(const driver&) = delete;

  void run(const job&);

  /// True while the thread may be inside a library call of the job; false once it only polls or is done.
  bool enqueueing() const { return enqueueing_; }
  void set_enqueueing(bool is) { enqueueing_ = is; }

  /// Loss and squared gradient norm of the last job.
  float loss() const { return results_[0]; }
  float norm_squared() const { return results_[1]; }

  /// Sets the time limit for the work of one phase of the install; 0: no limit.
  void set_patience(std::chrono::seconds s) { patience_ = s; }

  /// Appends the times of the last traced step.
  void take_times(std::vector<traced>& into);

 private:
  std::span<const kind> kinds() const;  // the kinds that the program has
  void enqueue(kind);
  void try_out();
  void wait_for(cudaStream_t, const std::function<void()>& meanwhile = {});
  void wait_in_install();
  std::string lanes_text() const;
  void look_at_place(const job&);
  [[noreturn]] void fail_on_device(cudaError_t);
  void look_at_communicators();

  context& context_;
  const program program_;
  const batch& batch_;
  report& report_;
  const cudaStream_t launch_on_;
  float* results_ = nullptr;        // pinned: loss, norm
  float* shared_ = nullptr;         // loss and norm on the device, from where they go to all processes
  std::unique_ptr<tracer> tracer_;  // for the traced graph, after it is captured
  bool by_calls_ = false;           // the traced graph is timed call by call
  cudaGraphExec_t graphs_[3]{};
  std::atomic<bool> enqueueing_ = false;
  std::chrono::seconds patience_{0};
};

}  // namespace rankc::runtime::cuda
