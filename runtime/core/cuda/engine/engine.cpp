// SPDX-License-Identifier: Apache-2.0
// The engine of a CUDA program: a thread and a GPU for each rank of this process (all ranks or one). All
// workers receive a job at once. If one fails, the communication of the others is aborted, so that none waits
// for ever.
#include <rankc/runtime/cuda/kernels.hpp>
#include <rankc/runtime/packed_times.hpp>
#include <rankc/runtime/time_limit.hpp>

#include "../../check_calls.hpp"
#include "access.hpp"
#include "../communication/agreement.hpp"
#include "batches.hpp"
#include "../device/check.hpp"
#include "../device/teardown.hpp"
#include "../communication/communicators.hpp"
#include "../progress/injected.hpp"
#include "../progress/marks.hpp"
#include "../communication/peer_groups.hpp"
#include "../communication/waiting_blocks.hpp"
#include "../linear/product_choices.hpp"
#include "worker.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>

namespace rankc::runtime::cuda {
namespace {

using namespace std::chrono_literals;

/// The GPU of this process. If a launcher shows each task only one GPU, it is that GPU.
int device_of(const placement& where) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess) devices = 0;
  cudaGetLastError();
  return devices == 1 ? 0 : where.device;
}

/// The time limit of a phase of the install. It is longer if a coordinator watches the ranks, because the
/// coordinator knows the state of all ranks and must report first.
std::chrono::seconds patience_of(const placement& where) {
  constexpr std::chrono::seconds after_coordinator = 30s;
  const auto own = std::chrono::ceil<std::chrono::seconds>(
      time_limit(exchange_timeout, std::getenv(exchange_timeout), usual_exchange));
  return where.others != nullptr ? own + after_coordinator : own;
}

void accept(const program& p, const placement& where) {
  check(p);
  check_calls<rank>(p, where);
  const description& about = p.about;
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess) devices = 0;
  cudaGetLastError();
  if (where.is_one_rank()) {
    if (where.device < devices) return;
    throw failure(1,
                  "RC5129: rank {} is the process of GPU {} of its machine, which has {}; start no more "
                  "processes than GPUs",
                  where.rank, where.device, devices);
  }
  if (devices < about.world())
    throw failure(
        1,
        "RC5130: the plan has {} ranks, one GPU each, and this machine has {} GPUs; use a machine with "
        "more GPUs, or a plan with fewer ranks",
        about.world(), devices);
}

class cuda_engine final : public engine {
 public:
  cuda_engine(const program& p, const placement& where) : program_(p), where_(where) {
    const description& about = program_.about;
    if (cudaHostAlloc(&stop_, sizeof(unsigned), cudaHostAllocPortable | cudaHostAllocMapped) != cudaSuccess)
      throw no_pinned_memory();
    *stop_ = 0;
    ranks_.resize(static_cast<std::size_t>(about.world()));
    for (int i = 0; i < about.world(); ++i) {
      if (where.is_one_rank() && where.rank != i) continue;
      auto& owner = ranks_[static_cast<std::size_t>(i)];
      owner = std::make_unique<context>(where.is_one_rank() ? where.device : i, about, i, memory_sources{},
                                        choices_);
      owner->of().stop = stop_;
      owner->of().steps_done = -1;
      places_.push_back(std::make_unique<marks>(owner->of()));
      if (!where.fault || where.fault->rank != i) continue;
      fault_ = std::make_unique<injected>(*where.fault);
      owner->of().fault = fault_.get();
    }
    batches_ = std::make_unique<batches>(about, *held().front());
    if (where.maps_peers && !where.is_one_rank()) {
      edges_ = std::make_unique<peer_edges>(about, ranks_);
      groups_ = std::make_unique<peer_groups>(about, ranks_);
    }
    for (const context* owner : held()) check_room(*owner);
    communicators_ = std::make_unique<communicators>(about, ranks_, edges_.get(), where);
    for (context* owner : held())
      workers_.push_back(std::make_unique<worker>(
          *owner, program_, batches_->of(owner->of().row->dp, owner->of().row->cp), *report_));
    for (const auto& w : workers_) w->of().set_patience(patience_of(where));
    if (where.others != nullptr) {
      places_.front()->store_in(where.others->words());
      where.others->on_failure(
          [to = report_.get()](const std::string& cause) { stop_job(*to, failure::reported(77, cause)); });
      where.others->on_look([this] { return look().front().second; });
    }
    try {
      warm_up();
    } catch (...) {
      if (!broken_) end_job(std::current_exception());
      release();
      throw;
    }
  }
  ~cuda_engine() override { release(); }

  const description& about() const override { return program_.about; }

  void set_batch(int dp, int microbatch, const std::int32_t* tokens, const std::int32_t* targets) override {
    batches_->set(dp, microbatch, tokens, targets);
  }
  void set_document_starts(int dp, int microbatch, const std::int32_t* starts) override {
    batches_->set_document_starts(dp, microbatch, starts);
  }
  void set_inputs(int dp, int microbatch, std::span<const named_array> inputs) override {
    batches_->set_inputs(dp, microbatch, inputs);
  }

  step_output step(const step_input& input) override {
    if (!program_.about.trains) throw forwards_alone(program_.about);
    for (context* owner : held()) owner->set_input(input);
    run_step(kind::train, input.step);
    return output_of(reporter().loss(), reporter().norm_squared());
  }

  step_output traced_step(const step_input& input, std::vector<traced>& into) override {
    return timed_step(input, into, false);
  }
  step_output step_by_calls(const step_input& input, std::vector<traced>& into) override {
    return timed_step(input, into, true);
  }

  double evaluate() override {
    run_step(kind::evaluate, step_);
    return reporter().loss();
  }

  bool holds(int rank_index) const override {
    layout_of(about(), rank_index);  // throws for a rank that does not exist
    return ranks_[static_cast<std::size_t>(rank_index)] != nullptr;
  }

  void read(int rank_index, region which, std::size_t first, std::size_t count, double* to) override {
    cuda::read(held(rank_index), which, first, count, to);
  }

  void logits(int rank_index, std::size_t token, double* to) override {
    cuda::logits(held(rank_index), token, to);
  }
  void routers(int rank_index, int microbatch, double* to) override {
    cuda::routers(held(rank_index), microbatch, to);
  }

  void write(int rank_index, region which, std::size_t first, std::size_t count,
             const double* from) override {
    place_of(about(), rank_index, which, first, count);  // throws if the rank does not hold them
    if (holds(rank_index)) cuda::write(held(rank_index), which, first, count, from);
  }

  std::vector<std::pair<int, rank_position>> look() override {
    std::vector<std::pair<int, rank_position>> all;
    for (std::size_t i = 0; context * owner : held())
      all.emplace_back(owner->of().index, places_[i++]->look());
    return all;
  }

  std::size_t arena_bytes(int rank_index) const override {
    return layout_of(about(), rank_index).arena_bytes;
  }

 private:
  /// The ranks of this process.
  std::vector<context*> held() const {
    std::vector<context*> some;
    for (const auto& owner : ranks_)
      if (owner != nullptr) some.push_back(owner.get());
    return some;
  }

  context& held(int rank_index) {
    if (holds(rank_index)) return *ranks_[static_cast<std::size_t>(rank_index)];
    throw in_another_process(rank_index, where_.rank);
  }

  /// Checks the collectives, tries the steps out, each rank alone and then all together, and captures them.
  /// The first pass loads every kernel and chooses every algorithm while no kernel waits for another rank.
  /// All ranks then use the same algorithms, and the second pass connects the ranks.
  void warm_up() {
    for (context* owner : held())
      owner->set_input({.lr = 0, .weight_decay = 0, .clip = 1, .beta1 = 0, .beta2 = 0, .eps = 1, .step = 1});
    const bool keeps = where_.speaks() && !where_.products.empty();
    const auto known =
        keeps ? readable_lines(open_products(where_.products), where_.products) : readable_products{};
    if (!known.note.empty()) std::fprintf(stderr, "%s: note: %s\n", about().name, known.note.c_str());
    share_products(known.lines);
    run_phase("collectives", job::what::check_collectives);
    run_phase("each rank alone", job::what::try_alone);
    if (where_.meets_others()) share_products(choices_->made());
    if (keeps) keep_products(where_.products, *choices_);
    run_phase("all together", job::what::try_together);
    run_phase("capture", job::what::capture);
    for (context* owner : held()) owner->of().steps_done = 0;
    for (const auto& place : places_) place->finish();
  }

  /// Runs a phase of the install, which observers see as part of step 0.
  void run_phase(const char* name, decltype(job::todo) todo) {
    for (const auto& place : places_) place->begin_phase(name);
    run({todo});
  }

  /// Shares the GEMM algorithms that each process knows. If two differ, the lower rank's is used.
  void share_products(const std::string& own) {
    if (!where_.meets_others()) return choices_->take(own, where_.products);
    const auto all = where_.exchange("algorithms of products", own);
    for (auto lines = all.rbegin(); lines != all.rend(); ++lines) choices_->take(*lines, where_.products);
  }

  step_output timed_step(const step_input& input, std::vector<traced>& into, bool by_calls) {
    if (!program_.about.trains) throw forwards_alone(program_.about);
    for (context* owner : held()) owner->set_input(input);
    run({.todo = job::what::capture_traced, .by_calls = by_calls});
    run_step(kind::traced, input.step);
    std::vector<traced> own;
    for (auto& w : workers_) w->of().take_times(own);
    if (held().front()->of().world == nullptr) into.insert(into.end(), own.begin(), own.end());
    else
      for (const std::string& theirs : where_.exchange("times of a step", packed(own)))
        unpack(theirs, names_, into);
    return output_of(reporter().loss(), reporter().norm_squared());
  }

  void run_step(kind which, std::int64_t step) {
    step_ = step;
    run({job::what::step, which, step});
  }

  /// Gives the job to all workers and waits for them.
  void run(const job& what) {
    if (broken_)
      throw failure(70, "RC5131: the program failed in an earlier step and cannot go on; install it again");
    {
      const std::lock_guard lock(report_->mutex);
      report_->pending = static_cast<int>(workers_.size());
    }
    for (auto& w : workers_) w->start(what);
    std::unique_lock lock(report_->mutex);
    report_->changed.wait(lock, [this] { return report_->pending == 0 || report_->first != nullptr; });
    if (report_->first == nullptr) return;
    lock.unlock();
    tell_the_others();
    stop_the_others();
    lock.lock();
    stuck_ = !report_->changed.wait_for(lock, 20s, [this] { return report_->pending == 0; });
    std::rethrow_exception(report_->first);
  }

  /// Ends the job because of a failure outside a worker. It tells the other ranks first, because destroying
  /// communicators may wait for them.
  void end_job(std::exception_ptr cause) {
    {
      const std::lock_guard lock(report_->mutex);
      report_->first = std::move(cause);
    }
    tell_the_others();
    stop_the_others();
  }

  /// Tells the other processes about the failure before this one frees its resources, which may take long.
  void tell_the_others() {
    if (where_.others == nullptr) return;
    try {
      std::rethrow_exception(report_->first);
    } catch (const failure& f) {
      where_.others->tell_failure(f.code, f.what());
    } catch (const std::exception& e) {
      where_.others->tell_failure(70, e.what());
    }
  }

  /// Stops all workers. Workers that poll stop when `stop_` is set. Kernels that wait for another rank end by
  /// `stop_` or by the abort. Lanes that wait for a pipeline edge are released. A worker inside a call gets
  /// two seconds to return, because NCCL must not be aborted during a call.
  void stop_the_others() {
    broken_ = true;
    *stop_ = 1;
    if (edges_ != nullptr) {
      edges_->let_go();
      groups_->let_go();
    }
    const auto until = std::chrono::steady_clock::now() + 2s;
    const auto busy = [this] {
      for (const auto& w : workers_)
        if (w->of().enqueueing()) return true;
      return false;
    };
    while (busy() && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(1ms);
    communicators_->abort();
  }

  /// Called after another rank has failed: the current job and each later one end with that failure.
  static void stop_job(report& to, const failure& cause) {
    const std::lock_guard lock(to.mutex);
    if (to.first == nullptr) to.first = std::make_exception_ptr(cause);
    to.changed.notify_all();
  }

  /// Destroys graphs before the communicators that they use. Resources that a stuck rank may still use are
  /// left to the end of the process, because freeing them would wait for that rank.
  void release() {
    if (where_.others != nullptr) {
      where_.others->on_failure(nullptr);
      where_.others->on_look(nullptr);
    }
    if (stuck_) {
      for (auto& w : workers_) static_cast<void>(w.release());
      static_cast<void>(communicators_.release());
      static_cast<void>(edges_.release());
      static_cast<void>(groups_.release());
      for (auto& place : places_) static_cast<void>(place.release());
      static_cast<void>(fault_.release());
      for (auto& owner : ranks_) static_cast<void>(owner.release());
      static_cast<void>(batches_.release());
      static_cast<void>(report_.release());
      stop_ = nullptr;
    }
    workers_.clear();
    communicators_.reset();
    places_.clear();
    ranks_.clear();
    edges_.reset();
    groups_.reset();  // lanes that a failed rank has left waiting end with their ranks
    check_teardown(cudaFreeHost(stop_), "cudaFreeHost");
  }

  /// The driver that has the loss and the norm. With ranks as threads it is one rank's; with ranks as
  /// processes every process has them.
  const driver& reporter() const {
    return (workers_.size() == 1 ? *workers_.front()
                                 : *workers_[static_cast<std::size_t>(reporter_of(program_.about))])
        .of();
  }

  const program program_;
  const placement where_;
  unsigned* stop_ = nullptr;  // pinned
  std::unique_ptr<batches> batches_;
  std::shared_ptr<product_choices> choices_ = std::make_shared<product_choices>();
  std::vector<std::unique_ptr<context>> ranks_;
  std::vector<std::unique_ptr<marks>> places_;  // for the ranks of this process
  std::unique_ptr<injected> fault_;
  std::int64_t step_ = 0;  // number of the last step
  std::unique_ptr<peer_edges> edges_;
  std::unique_ptr<peer_groups> groups_;
  std::unique_ptr<communicators> communicators_;
  std::unique_ptr<report> report_ = std::make_unique<report>();
  std::vector<std::unique_ptr<worker>> workers_;
  std::set<std::string> names_;  // the names in traces of other processes
  bool broken_ = false;
  bool stuck_ = false;  // a worker has not returned from a failed job
};

}  // namespace

std::unique_ptr<engine> install(const program& p, const placement& given) {
  placement where = given;
  if (where.is_one_rank()) where.device = device_of(given);
  // Uses as many hardware queues as possible, so that a stream that waits for another rank does not block
  // another stream of this rank.
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  accept(p, where);
  // Pinned memory creates a context on the calling thread's GPU, which must be the GPU of one of these ranks.
  const int first = where.is_one_rank() ? where.device : 0;
  if (const cudaError_t status = cudaSetDevice(first); status != cudaSuccess)
    throw unusable(70, first, status);
  if (where.meets_others()) agree_on_gpus(p.about, where, where.device);
  return std::make_unique<cuda_engine>(p, where);
}

}  // namespace rankc::runtime::cuda
