// SPDX-License-Identifier: Apache-2.0
// The engine of the host target: for each rank of this process, which are all or one, an arena and a thread per lane
// that computes, made at install. A step wakes every thread: that of lane 0 runs the generated function of its pipeline
// coordinate, the others the actions that this puts on their lanes. It ends when all have ended.
#include <rankc/runtime/host/kernels.hpp>
#include <rankc/runtime/packed_times.hpp>

#include "arena.hpp"
#include "check.hpp"
#include "fabric.hpp"
#include "injected.hpp"
#include "tracer.hpp"

#include <cblas.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <set>
#include <thread>

namespace rankc::host {

namespace {

/// A tracer on every rank, as long as this lives.
struct tracing {
  explicit tracing(std::span<rank> all) : ranks(all) {
    for (rank& r : ranks) r.trace = &of.emplace_back(r.index);
  }
  ~tracing() {
    for (rank& r : ranks) r.trace = nullptr;
  }
  tracing(const tracing&) = delete;

  std::span<rank> ranks;
  std::deque<tracer> of;
};

const layout& layout_of(const description& about, int rank) {
  return about.layouts[static_cast<std::size_t>(about.ranks[static_cast<std::size_t>(rank)].pp)];
}

/// A thread for each lane of a rank that computes; of all ranks, or of one.
std::size_t count_threads(const description& about, const placement& where = {}) {
  std::size_t count = 0;
  for (int rank = 0; rank < about.world(); ++rank)
    if (!where.is_one_rank() || where.rank == rank)
      for (const lane_row& lane : layout_of(about, rank).lanes) count += lane.computes;
  return count;
}

/// "OpenBLAS 0.3.21": what follows differs by the processor.
std::string openblas_version() {
  static std::mutex one_at_a_time;  // the library puts its text together anew each time, in one place
  const std::lock_guard lock(one_at_a_time);
  const std::string text = openblas_get_config();
  return text.substr(0, text.find(' ', text.find(' ') + 1));
}

/// The connections of this process; refuses ranks that run other libraries.
std::unique_ptr<transport> connect(const placement& where) {
  if (!where.meets_others()) return nullptr;
  const std::vector<std::string> all = where.exchange("OpenBLAS", openblas_version());
  for (std::size_t rank = 1; rank < all.size(); ++rank)
    if (all[rank] != all[0])
      throw failure(2, "rank 0 has " + all[0] + ", rank " + std::to_string(rank) + " has " + all[rank] +
                           "; the results of different libraries differ: install the same version on all machines");
  return where.others->connect();
}

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
  step_output step(const step_input&) override;
  step_output traced_step(const step_input&, std::vector<traced>& into) override;
  step_output counted_step(const step_input&, std::vector<transfer>& into);
  double evaluate() override;
  bool holds(int rank) const override { return holder_of(rank) != nullptr; }
  void read(int rank, region, std::size_t first, std::size_t count, double* to) override;
  void write(int rank, region, std::size_t first, std::size_t count, const double* from) override;
  void logits(int rank, std::size_t token, double* to) override;
  std::size_t arena_bytes(int rank) const override { return layout_of(rank).arena_bytes; }

 private:
  using body = void (*)(rank&);

  void serve(rank&, const std::stop_token&);
  void run(rank&);
  void run_all(body const* bodies);
  const layout& layout_of(int rank) const;
  const rank* holder_of(int rank) const;
  std::byte* element(int rank, region, std::size_t first, std::size_t count) const;
  double load(const rank& r, at where) const;
  step_output results();
  void share(int owner, std::span<double> values);
  standing look();

  /// A step or an evaluation, as others see it.
  struct under_way {
    explicit under_way(host_engine& e) : of(e), began(std::chrono::steady_clock::now()) {
      for (rank& r : of.ranks_) r.words->begin_step(r.input.step);
    }
    ~under_way() {
      for (rank& r : of.ranks_) r.words->end_step();
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
      if (seconds > of.slowest_step_.load()) of.slowest_step_.store(seconds);
    }
    host_engine& of;
    const std::chrono::steady_clock::time_point began;
  };

  const description& about_;
  const placement where_;
  body const* train_;
  body const* evaluate_;
  std::unique_ptr<transport> wires_;  // to other processes
  fabric fabric_;
  std::vector<arena> arenas_;       // of the ranks of this process
  std::vector<rank> ranks_;         // of lanes 0, as the arenas, then those of other threads
  int reporter_ = 0;                // the first rank of the last stage: holds loss and norm
  std::uint64_t shared_ = 0;        // what was shared between processes so far
  std::atomic<int> shared_by_{-1};  // the rank whose results are waited for
  std::atomic<double> slowest_step_{0};
  std::optional<injected> fault_;
  std::set<std::string> names_;     // of what ranks in other processes did

  std::mutex mutex_;
  std::condition_variable_any start_;
  std::condition_variable done_;
  body const* bodies_ = nullptr;
  std::uint64_t round_ = 0;
  int running_ = 0;
  std::vector<std::jthread> threads_;  // last: stopped and joined before what they use goes away
};

host_engine::host_engine(const program& p, const placement& where)
    : about_((check(p), p.about)),
      where_(where),
      train_(p.train),
      evaluate_(p.evaluate),
      wires_(connect(where)),
      fabric_(p.about, wires_.get(), where.rank),
      ranks_(count_threads(p.about, where)) {
  const std::size_t held = where.is_one_rank() ? 1 : about_.ranks.size();
  arenas_.reserve(held);
  const auto set = [&](rank& r, int index, int lane) {
    r.about = &about_;
    r.row = &about_.ranks[static_cast<std::size_t>(index)];
    r.where = &about_.layouts[static_cast<std::size_t>(r.row->pp)];
    r.index = index;
    r.arena = arenas_.back().data();
    r.wires = &fabric_;
    r.computes_on = lane;
    r.all_lanes.clear();
    for (int i = 0; i < static_cast<int>(r.where->lanes.size()); ++i) r.all_lanes.push_back({&r, i});
  };
  std::size_t next = held;
  for (int index = 0; index < about_.world(); ++index) {
    const rank_row& row = about_.ranks[static_cast<std::size_t>(index)];
    if (row.pp == about_.loss_at() && row.dp == 0 && row.cp == 0 && row.tp == 0) reporter_ = index;
    if (where.is_one_rank() && where.rank != index) continue;
    const layout& its = about_.layouts[static_cast<std::size_t>(row.pp)];
    const arena& memory = arenas_.emplace_back(its.arena_bytes);
    for (const rope_table& table : its.ropes) fill_rope(memory.data(), table, {table.positions * about_.cp, about_.cp, row.cp}, about_.type);
    set(ranks_[arenas_.size() - 1], index, 0);
    for (std::size_t lane = 1; lane < its.lanes.size(); ++lane)
      if (its.lanes[lane].computes) set(ranks_[next++], index, static_cast<int>(lane));
  }
  // As many threads of OpenBLAS as if all ranks of this machine were threads here.
  const int cores = static_cast<int>(std::thread::hardware_concurrency()), world = about_.world();
  const int on_machine = where.is_one_rank() && where.local_size > 0 ? where.local_size : world;
  const int threads = std::max(1, static_cast<int>(count_threads(about_)) * on_machine / world);
  openblas_set_num_threads(std::max(1, cores / threads));
  if (where.fault && holder_of(where.fault->rank) != nullptr) {
    fault_.emplace(*where.fault);
    ranks_[where.is_one_rank() ? 0 : static_cast<std::size_t>(where.fault->rank)].fault = &*fault_;
  }
  if (where.others != nullptr) {
    ranks_[0].words = &where.others->words();
    where.others->on_failure([this](const std::string& cause) { fabric_.fail(77, cause); });
    where.others->on_look([this] { return look(); });
  }
  threads_.reserve(ranks_.size());
  for (rank& r : ranks_) threads_.emplace_back([this, &r](const std::stop_token& stop) { serve(r, stop); });
}

// The life of a thread: one round per step, until the engine goes away.
void host_engine::serve(rank& r, const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  for (std::uint64_t seen = 0; start_.wait(lock, stop, [&] { return round_ != seen; });) {
    seen = round_;
    lock.unlock();
    run(r);
    lock.lock();
    if (--running_ == 0) done_.notify_one();
  }
}

// The first failure is the cause; the ranks that it stops throw too, which changes nothing.
void host_engine::run(rank& r) {
  try {
    if (r.computes_on != 0) fabric_.run_actions(r);
    else bodies_[r.row->pp](r);
    if (r.trace != nullptr) r.trace->end();
    fabric_.finish(r);
  } catch (const failure& f) {
    fabric_.fail(f.code, place(r) + ": " + f.what());
  } catch (const std::exception& e) {
    fabric_.fail(70, place(r) + ": " + e.what());
  }
}

void host_engine::run_all(body const* bodies) {
  if (const auto cause = fabric_.cause()) throw *cause;
  fabric_.start_step();
  {
    std::unique_lock lock(mutex_);
    bodies_ = bodies;
    running_ = static_cast<int>(ranks_.size());
    ++round_;
    start_.notify_all();
    done_.wait(lock, [&] { return running_ == 0; });
  }
  for (std::size_t r = 0; r < arenas_.size(); ++r)
    if (!arenas_[r].intact())
      fabric_.fail(70, place(ranks_[r].index, ranks_[r].input.step, "end of the step") +
                           ": a kernel has written past the arena of " + std::to_string(arenas_[r].size()) +
                           " bytes");
  const std::optional<failure> cause = fabric_.cause();
  if (!cause) return;
  if (where_.others != nullptr) where_.others->tell_failure(cause->code, cause->what());
  throw *cause;
}

double host_engine::load(const rank& r, at where) const {
  return about_.type == dtype::f64 ? *r.at<double>(where) : static_cast<double>(*r.at<float>(where));
}

step_output host_engine::step(const step_input& input) {
  if (!about_.trains) throw forwards_alone(about_);
  for (rank& r : ranks_) {
    r.input = input;
    r.action = "";
  }
  step_output out{};
  {
    const under_way seen(*this);
    run_all(train_);
    for (rank& r : ranks_) ++r.steps_done;
    out = results();
  }
  if (fault_) fault_->meet(injection::moment::after_step, ranks_[0].input.step, 0);
  return out;
}

/// Of the one rank of this process.
standing host_engine::look() {
  standing s = standing_of(*ranks_[0].words);
  for (const rank& r : ranks_) s.moved.push_back(r.words->calls.load(std::memory_order_relaxed));
  s.slowest_step = slowest_step_.load();
  fabric_.look(ranks_[0].index, s);
  if (const int owner = shared_by_.load(); owner >= 0) {
    s.waits = true;
    s.awaited = "the loss and the norm of the step";
    s.with = {owner};
  }
  return s;
}

/// Give what one rank's process has to all processes.
void host_engine::share(int owner, std::span<double> values) {
  if (wires_ == nullptr) return;
  constexpr std::uint64_t above_communicators = std::uint64_t{1} << 63;
  auto* const data = reinterpret_cast<std::byte*>(values.data());
  std::vector<transport::outgoing> out;
  std::vector<transport::incoming> in;
  if (where_.rank != owner) in.push_back({owner, data, values.size_bytes()});
  else
    for (int r = 0; r < about_.world(); ++r)
      if (r != owner) out.push_back({r, data, values.size_bytes()});
  shared_by_ = where_.rank != owner ? owner : -1;
  wires_->move(above_communicators | shared_++, out, in);
  shared_by_ = -1;
}

/// The loss and the norm, with every process.
step_output host_engine::results() {
  double both[2]{};
  if (const rank* r = holder_of(reporter_)) {
    both[0] = load(*r, r->where->loss);
    both[1] = load(*r, r->where->norm);
  }
  share(reporter_, both);
  return {both[0], std::sqrt(both[1])};
}

step_output host_engine::traced_step(const step_input& input, std::vector<traced>& into) {
  tracing all{std::span(ranks_).first(arenas_.size())};
  const double start = now();
  const step_output out = step(input);
  std::vector<traced> own;
  for (tracer& t : all.of) t.take(start, own);
  if (wires_ == nullptr) into.insert(into.end(), own.begin(), own.end());
  else
    for (const std::string& theirs : where_.exchange("times of a step", packed(own))) unpack(theirs, names_, into);
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

double host_engine::evaluate() {
  for (rank& r : ranks_) r.action = "";
  const under_way seen(*this);
  run_all(evaluate_);
  return results().loss;
}

void host_engine::set_batch(int dp, int microbatch, const std::int32_t* tokens, const std::int32_t* targets) {
  if (dp < 0 || dp >= about_.dp || microbatch < 0 || microbatch >= about_.microbatches)
    throw failure(1, "batch of dp " + std::to_string(dp) + ", microbatch " + std::to_string(microbatch) +
                         "; this program has dp below " + std::to_string(about_.dp) +
                         " and microbatch below " + std::to_string(about_.microbatches));
  for (const rank& r : std::span(ranks_).first(arenas_.size())) {
    if (r.row->dp != dp) continue;
    const runtime::chunks has = about_.chunks_of(*r.row);
    const std::size_t first = static_cast<std::size_t>(microbatch) * about_.rows * has.count();
    if (r.where->reads_tokens) runtime::copy_chunks(tokens, about_.rows, has, r.at<std::int32_t>(r.where->tokens) + first);
    if (r.where->reads_targets) runtime::copy_chunks(targets, about_.rows, has, r.at<std::int32_t>(r.where->targets) + first);
  }
}

const layout& host_engine::layout_of(int rank) const {
  if (rank < 0 || rank >= about_.world())
    throw failure(1, "rank " + std::to_string(rank) + " is not one of the " + std::to_string(about_.world()) +
                         " ranks of this program");
  return host::layout_of(about_, rank);
}

/// The rank as lane 0's thread sees it; null where another process has it.
const rank* host_engine::holder_of(int rank) const {
  if (!where_.is_one_rank()) return &ranks_[static_cast<std::size_t>(rank)];
  return rank == where_.rank ? &ranks_[0] : nullptr;
}

/// Null where another process has the rank.
std::byte* host_engine::element(int rank, region what, std::size_t first, std::size_t count) const {
  layout_of(rank);  // refuses a rank that is none
  const at where = place_of(about_, rank, what, first, count);
  const host::rank* holder = holder_of(rank);
  return holder != nullptr ? holder->arena + where.byte : nullptr;
}

void host_engine::read(int rank, region what, std::size_t first, std::size_t count, double* to) {
  const std::byte* from = element(rank, what, first, count);
  if (from == nullptr)
    throw failure(1, "rank " + std::to_string(rank) + " is in another process, and cannot be read in that of rank " +
                         std::to_string(where_.rank));
  if (fault_ && holder_of(rank)->fault != nullptr) fault_->meet(injection::moment::save, ranks_[0].input.step, 0);
  switch (type_of(about_, what)) {
    case dtype::f64: std::copy_n(reinterpret_cast<const double*>(from), count, to); break;
    case dtype::f32: std::copy_n(reinterpret_cast<const float*>(from), count, to); break;
    case dtype::bf16: std::transform(reinterpret_cast<const bf16*>(from), reinterpret_cast<const bf16*>(from) + count, to, widened);
  }
}

void host_engine::write(int rank, region what, std::size_t first, std::size_t count, const double* from) {
  std::byte* to = element(rank, what, first, count);
  if (to == nullptr) return;
  switch (type_of(about_, what)) {
    case dtype::f64: std::copy_n(from, count, reinterpret_cast<double*>(to)); break;
    case dtype::f32:
      std::transform(from, from + count, reinterpret_cast<float*>(to), [](double x) { return static_cast<float>(x); });
      break;
    case dtype::bf16:
      std::transform(from, from + count, reinterpret_cast<bf16*>(to), [](double x) { return rounded_to_nearest(static_cast<float>(x)); });
  }
}

void host_engine::logits(int rank, std::size_t token, double* to) {
  const auto count = static_cast<std::size_t>(layout_of(rank).logits.columns);
  const at from = place_of_logits(about_, rank, token);
  const struct rank* r = holder_of(rank);
  if (r == nullptr) throw failure(1, "rank " + std::to_string(rank) + " is in another process, and so are its logits");
  if (about_.type == dtype::f64) std::copy_n(r->at<double>(from), count, to);
  else std::copy_n(r->at<float>(from), count, to);
}

}  // namespace

step_output counted_step(engine& e, const step_input& input, std::vector<transfer>& into) {
  host_engine* const here = dynamic_cast<host_engine*>(&e);
  if (here == nullptr) throw failure(1, "what is communicated is counted on the host; this engine is another target's");
  return here->counted_step(input, into);
}

std::unique_ptr<engine> install(const program& p, const placement& where) { return std::make_unique<host_engine>(p, where); }

}  // namespace rankc::host
