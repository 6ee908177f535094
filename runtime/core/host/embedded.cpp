// SPDX-License-Identifier: Apache-2.0
// The engine of one rank that uses an application's threads, memory and communication.
#include <rankc/runtime/host/embedded.hpp>
#include <rankc/runtime/named_inputs.hpp>

#include "../check_calls.hpp"
#include "check.hpp"
#include "fabric.hpp"
#include "step.hpp"

#include <latch>
#include <limits>

namespace rankc::runtime::host {
namespace {

class embedded_rank final : public engine {
 public:
  embedded_rank(const program& p, const surroundings& s, std::shared_ptr<fabric> wires)
      : program_(p),
        beside_(s.beside),
        wires_(std::move(wires)),
        rank_(p.about, s.rank, *wires_, s.memory != nullptr ? s.memory : std::pmr::new_delete_resource()) {}

  const description& about() const override { return program_.about; }

  void set_batch(int dp, int microbatch, const std::int32_t* tokens, const std::int32_t* targets) override {
    check_batch(about(), dp, microbatch);
    if (dp == rank_.main().row->dp) rank_.set_batch(microbatch, tokens, targets);
  }

  void set_document_starts(int dp, int microbatch, const std::int32_t* starts) override {
    check_batch(about(), dp, microbatch);
    if (dp == rank_.main().row->dp) rank_.set_document_starts(microbatch, starts);
  }

  void set_inputs(int dp, int microbatch, std::span<const named_array> inputs) override {
    check_batch(about(), dp, microbatch);
    check_inputs(about(), inputs);
    if (dp == rank_.main().row->dp) rank_.set_inputs(microbatch, inputs);
  }

  step_output step(const step_input& input) override {
    if (!about().trains) throw forwards_alone(about());
    for (rank& r : rank_.views()) r.input = input;
    run(program_.train);
    for (rank& r : rank_.views()) ++r.steps_done;
    return output_of(loss(), rank_.norm_squared());
  }

  step_output traced_step(const step_input&, std::vector<traced>&) override { throw no_times_of_embedded(); }

  double evaluate() override {
    run(program_.evaluate);
    return loss();
  }

  bool holds(int index) const override { return index == rank_.main().index; }
  void read(int index, region what, std::size_t first, std::size_t count, double* to) override {
    place_of(about(), index, what, first, count);
    if (!holds(index)) throw not_embedded(index);
    rank_.read(what, first, count, to);
  }
  void write(int index, region what, std::size_t first, std::size_t count, const double* from) override {
    place_of(about(), index, what, first, count);
    if (holds(index)) rank_.write(what, first, count, from);
  }
  void logits(int index, std::size_t token, double* to) override {
    place_of_logits(about(), index, token);
    if (!holds(index)) throw not_embedded(index);
    rank_.logits(token, to);
  }
  void routers(int index, int microbatch, double* to) override {
    place_of_routers(about(), index, microbatch);
    if (!holds(index)) throw not_embedded(index);
    rank_.routers(microbatch, to);
  }
  std::size_t arena_bytes(int index) const override { return layout_of(about(), index).arena_bytes; }

 private:
  /// Runs lane 0 on the calling thread and the other lanes concurrently.
  void run(void (*const* bodies)(rank&)) {
    if (const auto cause = wires_->cause()) throw *cause;
    const std::span<rank> views = rank_.views();
    for (rank& r : views) {
      r.action = "";
      r.words->begin_step(r.input.step);
    }
    wires_->start_step(rank_.main().index);
    std::latch beside(static_cast<std::ptrdiff_t>(views.size()) - 1);
    for (rank& r : views.subspan(1)) {
      const status s = status_of([&] {
        beside_([&] {
          run_part(r, nullptr);
          beside.count_down();
        });
      });
      if (s.ok()) continue;
      wires_->fail(70, place(r) + ": " + say("RC5043: the application started no thread: {}", s.text));
      beside.count_down();
    }
    run_part(views[0], bodies[views[0].row->pp]);
    beside.wait();
    for (rank& r : views) r.words->end_step();
    look_past_the_end(rank_);
    if (const auto cause = wires_->cause()) throw *cause;
  }

  double loss() const {
    return rank_.main().row->pp == about().loss_at() ? rank_.loss()
                                                     : std::numeric_limits<double>::quiet_NaN();
  }

  const program program_;
  const std::function<void(std::function<void()>)> beside_;
  const std::shared_ptr<fabric> wires_;
  local_rank rank_;
};

/// The fabric that connects the rank with the others, if there are any.
std::shared_ptr<fabric> wires_of(const program& p, const surroundings& s) {
  const description& about = p.about;
  if (s.others != nullptr) return s.others->wires();
  if (s.communications != nullptr) return std::make_shared<fabric>(about, *s.communications, s.rank);
  if (about.world() == 1) return std::make_shared<fabric>(about);
  throw failure(1,
                "RC5044: the plan {} has {} ranks; give each rank the meeting_place of this process "
                "(surroundings::others), or a carriage of the application (surroundings::communications)",
                about.name, about.world());
}

std::unique_ptr<engine> made(const program& p, const surroundings& s) {
  check(p);
  const std::size_t threads = count_threads(layout_of(p.about, s.rank));
  if (threads > 1 && !s.beside)
    throw failure(1,
                  "RC5045: rank {} of the plan {} computes on {} lanes concurrently; surroundings::beside "
                  "must run each lane but the first on its own thread, or use a plan without overlap",
                  s.rank, p.about.name, threads);
  check_calls<rank>(p, s.rank);
  return std::make_unique<embedded_rank>(p, s, wires_of(p, s));
}

}  // namespace

status meet(const program& p, meeting_place& place) noexcept {
  return status_of([&] {
    check(p);
    place.wires_ = std::make_shared<fabric>(p.about);
    place.wires_->expect_ranks_one_by_one();
  });
}

status embed(const program& p, const surroundings& s, embedded& into) noexcept {
  return status_of([&] {
    into = embedded(made(p, s), s.rank, s.log);
    if (s.log)
      s.log((std::string("rank ") + std::to_string(s.rank) + " of the plan " + p.about.name + " has taken " +
             std::to_string(layout_of(p.about, s.rank).arena_bytes) + " bytes")
                .c_str());
  });
}

}  // namespace rankc::runtime::host
