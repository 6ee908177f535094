// SPDX-License-Identifier: Apache-2.0
// The engine of the host target. It creates at install, for each rank of this process (all ranks or one), its
// memory and one thread for each computing lane. A step wakes every thread. The thread of lane 0 runs the
// generated function of its pipeline coordinate. The other threads run the actions that this function puts on
// their lanes. The step ends when all threads have ended.
#include <rankc/runtime/host/transfers.hpp>
#include <rankc/runtime/named_inputs.hpp>
#include <rankc/runtime/process_limits.hpp>

#include "../check_calls.hpp"
#include "blas_buffers.hpp"
#include "check.hpp"
#include "fabric.hpp"
#include "injected.hpp"
#include "local_rank.hpp"
#include "other_processes.hpp"
#include "retrace.hpp"
#include "step.hpp"
#include "tracer.hpp"

#include <cblas.h>

#include <algorithm>
#include <atomic>
#include <new>
#include <thread>

namespace rankc::runtime::host {

namespace {

/// Sets a tracer on every rank during its lifetime.
struct tracing {
  explicit tracing(std::span<local_rank> all) : ranks(all) {
    for (local_rank& each : ranks) each.main().trace = &of.emplace_back(each.main().index);
  }
  ~tracing() {
    for (local_rank& each : ranks) each.main().trace = nullptr;
  }
  tracing(const tracing&) = delete;

  std::span<local_rank> ranks;
  std::deque<tracer> of;
};

/// Makes every thread of these ranks record the times of its calls during its lifetime.
struct timing {
  explicit timing(std::span<local_rank> all) : ranks(all) {
    for (local_rank& each : ranks)
      for (rank& view : each.views()) view.calls = &of.emplace_back();
  }
  ~timing() {
    for (local_rank& each : ranks)
      for (rank& view : each.views()) view.calls = nullptr;
  }
  timing(const timing&) = delete;

  std::span<local_rank> ranks;
  std::deque<std::vector<traced>> of;
};

class host_engine final : public engine {
 public:
  host_engine(const program& p, const placement& where);
  ~host_engine() override {
    if (where_.others == nullptr) return;
    where_.others->on_failure(nullptr);
    where_.others->on_look(nullptr);
  }

  const description& about() const override { return about_; }
  void set_batch(int dp, int microbatch, const std::int32_t* tokens, const std::int32_t* targets) override;
  void set_document_starts(int dp, int microbatch, const std::int32_t* starts) override;
  void set_inputs(int dp, int microbatch, std::span<const named_array>) override;
  step_output step(const step_input&) override;
  step_output traced_step(const step_input&, std::vector<traced>& into) override;
  step_output step_by_calls(const step_input&, std::vector<traced>& into) override;
  step_output counted_step(const step_input&, std::vector<transfer>& into);
  std::optional<retraced> retrace(const step_input&) override;
  double evaluate() override;
  bool holds(int rank) const override { return find(rank) != nullptr; }
  void read(int rank, region, std::size_t first, std::size_t count, double* to) override;
  void write(int rank, region, std::size_t first, std::size_t count, const double* from) override;
  void logits(int rank, std::size_t token, double* to) override;
  void routers(int rank, int microbatch, double* to) override;
  std::vector<std::pair<int, rank_position>> look() override;
  std::size_t arena_bytes(int rank) const override { return layout_of(about_, rank).arena_bytes; }

 private:
  using body = void (*)(rank&);

  void make_ranks();
  void share_cores();
  void serve(rank&, const std::stop_token&);
  void run_all(body const* bodies);
  local_rank* find(int rank);
  const local_rank* find(int rank) const { return const_cast<host_engine*>(this)->find(rank); }
  local_rank& held(int rank);
  void for_each_view(const auto& call) {
    for (local_rank& each : ranks_)
      for (rank& r : each.views()) call(r);
  }
  int count_views() {
    int views = 0;
    for_each_view([&](rank&) { ++views; });
    return views;
  }
  step_output results();
  rank_position look_at(const local_rank&);

  /// Marks a step or an evaluation as active for observers.
  struct under_way {
    explicit under_way(host_engine& e) : of(e) {
      of.for_each_view([](rank& r) { r.words->begin_step(r.input.step); });
    }
    ~under_way() {
      of.for_each_view([](rank& r) { r.words->end_step(); });
    }
    host_engine& of;
  };

  const description& about_;
  const placement where_;
  body const* train_;
  body const* evaluate_;
  other_processes others_;
  fabric fabric_;
  std::vector<local_rank> ranks_;  // all ranks, in order, or the one of this process
  std::optional<injected> fault_;

  std::mutex mutex_;
  std::condition_variable_any start_;
  std::condition_variable done_;
  body const* bodies_ = nullptr;
  std::uint64_t round_ = 0;
  int running_ = 0;
  // Declared last, so that the threads are joined before the members that they use are destroyed.
  std::vector<std::jthread> threads_;
};

host_engine::host_engine(const program& p, const placement& where)
    : about_((check(p), p.about)),
      where_(where),
      train_(p.train),
      evaluate_(p.evaluate),
      others_(where_, about_.world()),
      fabric_(p.about, others_.wires(), where.rank) {
  check_calls<rank>(p, where);
  make_ranks();
  share_cores();
  if (local_rank* const faulty = where.fault ? find(where.fault->rank) : nullptr) {
    fault_.emplace(*where.fault);
    faulty->main().fault = &*fault_;
  }
  if (where.others != nullptr) ranks_.front().main().words = &where.others->words();
  reserve_blas_buffers(openblas_get_num_threads() - 1 + count_views());
  for_each_view([this](rank& r) {
    threads_.emplace_back([this, &r](const std::stop_token& stop) { serve(r, stop); });
  });
  // Last, because these calls must not outlive an engine whose constructor fails.
  if (where.others == nullptr) return;
  where.others->on_failure([this](const std::string& cause) { fabric_.fail(77, cause); });
  where.others->on_look([this] { return look_at(ranks_.front()); });
}

void host_engine::make_ranks() try {
  ranks_.reserve(where_.is_one_rank() ? 1 : about_.ranks.size());
  for (int index = 0; index < about_.world(); ++index)
    if (!where_.is_one_rank() || where_.rank == index)
      ranks_.emplace_back(about_, index, fabric_, std::pmr::new_delete_resource());
} catch (const std::bad_alloc&) {
  std::size_t bytes = 0;
  for (int index = 0; index < about_.world(); ++index)
    if (!where_.is_one_rank() || where_.rank == index) bytes += arena_bytes(index);
  throw failure(
      70, "RC5026: install: the arenas need {} bytes of memory, and the process may not allocate them: {}",
      bytes, memory_text());
}

/// Gives OpenBLAS an equal share of the machine's cores for each lane, if the memory limits allow these
/// threads.
void host_engine::share_cores() {
  const int cores = static_cast<int>(std::thread::hardware_concurrency()), world = about_.world();
  const int on_machine = where_.is_one_rank() && where_.local_size > 0 ? where_.local_size : world;
  std::size_t threads = 0;
  for (int index = 0; index < world; ++index) threads += count_threads(layout_of(about_, index));
  const int share = std::max(1, cores / std::max(1, static_cast<int>(threads) * on_machine / world));
  if (can_have_blas_threads(share - 1 + count_views())) openblas_set_num_threads(share);
}

// The loop of a thread: one round per step, until the engine is destroyed.
void host_engine::serve(rank& r, const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  for (std::uint64_t seen = 0; start_.wait(lock, stop, [&] { return round_ != seen; });) {
    seen = round_;
    lock.unlock();
    run_part(r, bodies_[r.row->pp]);
    if (!where_.is_one_rank() && !fabric_.cause()) r.words->end_step();
    lock.lock();
    if (--running_ == 0) done_.notify_one();
  }
}

void host_engine::run_all(body const* bodies) {
  if (const auto cause = fabric_.cause()) throw *cause;
  for (const local_rank& each : ranks_) fabric_.start_step(each.main().index);
  {
    std::unique_lock lock(mutex_);
    bodies_ = bodies;
    running_ = static_cast<int>(threads_.size());
    ++round_;
    start_.notify_all();
    done_.wait(lock, [&] { return running_ == 0; });
  }
  for (const local_rank& each : ranks_) look_past_the_end(each);
  const std::optional<failure> cause = fabric_.cause();
  if (!cause) return;
  if (where_.others != nullptr) where_.others->tell_failure(cause->code, cause->what());
  throw *cause;
}

step_output host_engine::step(const step_input& input) {
  if (!about_.trains) throw forwards_alone(about_);
  for_each_view([&](rank& r) {
    r.input = input;
    r.action = "";
  });
  step_output out{};
  {
    const under_way seen(*this);
    run_all(train_);
    for_each_view([](rank& r) { ++r.steps_done; });
    out = results();
  }
  if (fault_) meet_fault_after_step(find(where_.fault->rank)->main());
  return out;
}

std::vector<std::pair<int, rank_position>> host_engine::look() {
  std::vector<std::pair<int, rank_position>> all;
  for (const local_rank& each : ranks_) all.emplace_back(each.main().index, look_at(each));
  return all;
}

/// The position of a rank, as its thread of lane 0 stores it.
rank_position host_engine::look_at(const local_rank& of) {
  const rank& first = of.main();
  rank_position s = position_of(*first.words);
  for (const rank& r : of.views()) s.moved.push_back(r.words->calls.load(std::memory_order_relaxed));
  fabric_.look(first.index, s);
  if (const int owner = others_.shared_by(); owner >= 0) {
    s.waits = true;
    s.awaited = "the loss and the norm of the step";
    s.with = {owner};
  }
  return s;
}

/// The loss and the norm, shared with every process.
step_output host_engine::results() {
  const int reporter = reporter_of(about_);
  double both[2]{};
  if (const local_rank* const its = find(reporter)) {
    both[0] = its->loss();
    both[1] = its->norm_squared();
  }
  others_.share(reporter, both);
  return output_of(both[0], both[1]);
}

step_output host_engine::traced_step(const step_input& input, std::vector<traced>& into) {
  tracing all{ranks_};
  const double start = now();
  const step_output out = step(input);
  std::vector<traced> own;
  for (tracer& t : all.of) t.take(start, own);
  others_.gather_times(own, into);
  return out;
}

step_output host_engine::step_by_calls(const step_input& input, std::vector<traced>& into) {
  timing all{ranks_};
  const double start = now();
  const step_output out = step(input);
  std::vector<traced> own;
  for (const std::vector<traced>& calls : all.of)
    for (const traced& c : calls) own.push_back({c.rank, c.lane, c.name, c.begin - start, c.end - start});
  others_.gather_times(own, into);
  return out;
}

step_output host_engine::counted_step(const step_input& input, std::vector<transfer>& into) {
  struct telling {
    fabric& by;
    ~telling() { by.tell(nullptr); }
  } until_the_end{fabric_};
  fabric_.tell(&into);
  return step(input);
}

std::optional<retraced> host_engine::retrace(const step_input& input) {
  if (fault_) fault_->begin_again();
  const retracing all(ranks_);
  const step_output out = step(input);
  return retraced{out, all.origins()};
}

double host_engine::evaluate() {
  for_each_view([](rank& r) { r.action = ""; });
  const under_way seen(*this);
  run_all(evaluate_);
  return results().loss;
}

void host_engine::set_batch(int dp, int microbatch, const std::int32_t* tokens, const std::int32_t* targets) {
  check_batch(about_, dp, microbatch);
  for (local_rank& each : ranks_)
    if (each.main().row->dp == dp) each.set_batch(microbatch, tokens, targets);
}

void host_engine::set_document_starts(int dp, int microbatch, const std::int32_t* starts) {
  check_batch(about_, dp, microbatch);
  for (local_rank& each : ranks_)
    if (each.main().row->dp == dp) each.set_document_starts(microbatch, starts);
}

void host_engine::set_inputs(int dp, int microbatch, std::span<const named_array> inputs) {
  check_batch(about_, dp, microbatch);
  check_inputs(about_, inputs);
  for (local_rank& each : ranks_)
    if (each.main().row->dp == dp) each.set_inputs(microbatch, inputs);
}

/// The rank if this process runs it, else null.
/// Errors: failure (1) for a rank that does not exist.
local_rank* host_engine::find(int rank) {
  layout_of(about_, rank);
  if (!where_.is_one_rank()) return &ranks_[static_cast<std::size_t>(rank)];
  return rank == where_.rank ? &ranks_.front() : nullptr;
}

local_rank& host_engine::held(int rank) {
  if (local_rank* const here = find(rank)) return *here;
  throw in_another_process(rank, where_.rank);
}

void host_engine::read(int rank, region what, std::size_t first, std::size_t count, double* to) {
  local_rank& its = held(rank);
  if (its.main().fault != nullptr) fault_->meet(injection::moment::save, its.main().input.step, 0);
  its.read(what, first, count, to);
}

void host_engine::write(int rank, region what, std::size_t first, std::size_t count, const double* from) {
  if (local_rank* const here = find(rank)) here->write(what, first, count, from);
  else place_of(about_, rank, what, first, count);  // throws if the rank does not hold them
}

void host_engine::logits(int rank, std::size_t token, double* to) {
  place_of_logits(about_, rank, token);
  held(rank).logits(token, to);
}
void host_engine::routers(int rank, int microbatch, double* to) {
  place_of_routers(about_, rank, microbatch);
  held(rank).routers(microbatch, to);
}

}  // namespace

step_output counted_step(engine& e, const step_input& input, std::vector<transfer>& into) {
  host_engine* const here = dynamic_cast<host_engine*>(&e);
  if (here == nullptr)
    throw failure(1, "RC5046: communication is counted on the host only; this engine is another target's");
  return here->counted_step(input, into);
}

std::unique_ptr<engine> install(const program& p, const placement& where) {
  return std::make_unique<host_engine>(p, where);
}

}  // namespace rankc::runtime::host
