// SPDX-License-Identifier: Apache-2.0
// Lanes and blocking of the fabric. One lock protects all state. Only data moves without it.
#include "fabric.hpp"
#include "injected.hpp"

#include "tracer.hpp"

#include <algorithm>

namespace rankc::runtime::host {

fabric::fabric(const description& about, runtime::transport* wires, int own)
    : about_(about), worker_of_(about.ranks.size()), wires_(wires) {
  const auto where = [&](std::size_t r) -> const layout& {
    return about.layouts[static_cast<std::size_t>(about.ranks[r].pp)];
  };
  int count = 0;
  for (std::size_t r = 0; r < worker_of_.size(); ++r)
    if (own < 0 || own == static_cast<int>(r))
      for (const lane_row& lane : where(r).lanes) worker_of_[r].push_back(lane.computes ? count++ : -1);
  workers_ = std::vector<worker>(static_cast<std::size_t>(count));
  for (std::size_t r = 0; r < worker_of_.size(); ++r)
    for (std::size_t lane = 0; lane < worker_of_[r].size(); ++lane) {
      if (worker_of_[r][lane] < 0) continue;
      worker& made = workers_[static_cast<std::size_t>(worker_of_[r][lane])];
      made.rank = static_cast<int>(r);
      made.lane = static_cast<int>(lane);
      made.queues = std::vector<queue>(worker_of_[r].size());
      if (lane == 0) made.events.resize(static_cast<std::size_t>(where(r).events));
    }
  for (const runtime::communicator& c : about.communicators) {
    meeting& m = meetings_.emplace_back();
    m.ranks = c.ranks;
    m.front.resize(c.ranks.size());
    m.back.resize(c.ranks.size());
  }
  if (wires != nullptr) connect(*wires, own);
}

const char* fabric::name(int rank, int lane) const {
  return about_.layouts[static_cast<std::size_t>(about_.ranks[static_cast<std::size_t>(rank)].pp)]
      .lanes[static_cast<std::size_t>(lane)]
      .name;
}

fabric::worker& fabric::own(const rank& r) {
  return workers_[static_cast<std::size_t>(
      worker_of_[static_cast<std::size_t>(r.index)][static_cast<std::size_t>(r.computes_on)])];
}

void fabric::start_step(int rank) {
  const lock l(mutex_);
  if (come_back_) --away_;
  for (const int index : worker_of_[static_cast<std::size_t>(rank)]) {
    if (index < 0) continue;
    worker& each = workers_[static_cast<std::size_t>(index)];
    each.ending = false;
    std::fill(each.events.begin(), each.events.end(), mark{});
    ++live_;
  }
}

void fabric::finish(const rank& r) {
  lock l(mutex_);
  worker& me = own(r);
  me.ending = true;
  const int lanes = static_cast<int>(me.queues.size());
  for (int lane = 1; me.lane == 0 && lane < lanes; ++lane) {
    if (worker_of_[static_cast<std::size_t>(r.index)][static_cast<std::size_t>(lane)] < 0) continue;
    op last;
    last.kind = op_kind::work;
    append(l, r, lane, last);
  }
  for (int lane = 0; lane < lanes; ++lane) block_until(l, r, lane, me.on(lane).posted);
  --live_;
  if (come_back_ && me.lane == 0) ++away_;
  fail_if_stuck();
}

fabric::mark& fabric::find(const rank& r, event e) {
  std::vector<mark>& events = first(r.index).events;
  if (e.index < 0 || static_cast<std::size_t>(e.index) >= events.size())
    throw failure(70, "RC5047: event {} is not one of the {} events of this rank's layout", e.index,
                  events.size());
  return events[static_cast<std::size_t>(e.index)];
}

// Only the thread of lane 0 writes events and `posted`, so it reads them here without the lock.
void fabric::record(const rank& r, int lane, event e) {
  find(r, e) = {lane, first(r.index).on(lane).posted, true};
}

void fabric::wait(const rank& r, int lane, event e) {
  const mark m = find(r, e);
  if (!m.recorded)
    throw failure(70,
                  "RC5048: event {} is waited for before this step records it; a wait must follow its record",
                  e.index);
  hold(r, lane, m.lane, m.position);
}

void fabric::follow(const rank& r, int lane, int before) {
  hold(r, lane, before, first(r.index).on(before).posted);
}

// Work of lane 0 is complete when lane 0 posts.
void fabric::hold(const rank& r, int lane, int awaited, std::uint64_t position) {
  if (awaited == lane || awaited == 0) return;
  lock l(mutex_);
  throw_if_failed();
  if (lane == 0) return block_until(l, r, awaited, position);
  if (first(r.index).on(awaited).completed >= position) return;
  op held;
  held.awaited = awaited;
  held.position = position;
  append(l, r, lane, held);
}

void fabric::post(const rank& r, op o) {
  lock l(mutex_);
  throw_if_failed();
  o.plan_hash = r.about->plan_hash;
  o.action = r.action;
  o.step = r.input.step;
  if (r.fault != nullptr) {
    o.is_lost = r.fault->takes(injection::fault::drop);
    if (o.is_lost && wires_ == nullptr) return;
    if (r.fault->takes(injection::fault::corrupt)) o.what.index = ~o.what.index;
  }
  append(l, r, o.on, o);
  carry_all(l);
  if (o.on == r.computes_on) block_until(l, r, o.on, own(r).on(o.on).posted);
  throw_if_failed();
}

void fabric::post_action(const rank& r, const op& o) {
  lock l(mutex_);
  throw_if_failed();
  append(l, r, o.on, o);
}

void fabric::run_actions(rank& r) {
  lock l(mutex_);
  worker &me = own(r), &filled_by = first(r.index);
  for (bool more = true; more;) {
    me.idle = true;
    block(l, r, me);
    me.idle = false;
    const op& o = *me.work;
    more = o.work != nullptr;
    if (more) {
      l.unlock();
      r.action = o.action;
      r.words->name(o.action);
      if (o.times != nullptr) o.times->begin = now();
      o.work(r[me.lane]);
      if (o.times != nullptr) o.times->end = now();
      l.lock();
    }
    me.work = nullptr;
    ++filled_by.on(me.lane).completed;
    settle(filled_by);
    carry_all(l);
  }
}

void fabric::append(lock& l, const rank& r, int lane, const op& o) {
  worker& me = own(r);
  queue& q = me.on(lane);
  if (q.posted == q.completed + capacity) block_until(l, r, lane, q.completed + 1);
  op& entry = q.ring[q.posted % capacity];
  entry = o;
  entry.on = lane;
  entry.rank = r.index;
  entry.worker = static_cast<int>(&me - workers_.data());
  entry.next = nullptr;
  ++q.posted;
  if (entry.communicator >= 0) {
    meeting& m = meetings_[static_cast<std::size_t>(o.communicator)];
    op*& back = m.back[static_cast<std::size_t>(o.member)];
    (back ? back->next : m.front[static_cast<std::size_t>(o.member)]) = &entry;
    back = &entry;
  }
  advance(me);
}

// Retires the satisfied waits at the heads of a worker's lanes, then starts the communications that can
// start.
void fabric::advance(worker& me) {
  for (bool moved = true; moved;) {
    moved = false;
    for (queue& q : me.queues)
      while (!q.empty() && q.head().kind == op_kind::wait &&
             me.on(q.head().awaited).completed >= q.head().position) {
        ++q.completed;
        moved = true;
      }
  }
  for (queue& q : me.queues)
    if (!q.empty() && q.head().communicator >= 0)
      try_start(meetings_[static_cast<std::size_t>(q.head().communicator)]);
  hand_over(me);
}

// Gives the actions at the heads of lanes to their threads.
void fabric::hand_over(worker& from) {
  for (std::size_t lane = 1; from.lane == 0 && lane < from.queues.size(); ++lane) {
    queue& q = from.queues[lane];
    if (q.empty() || q.head().kind != op_kind::work) continue;
    worker& to = workers_[static_cast<std::size_t>(worker_of_[static_cast<std::size_t>(from.rank)][lane])];
    to.work = &q.head();
    if (to.blocked && to.met()) wake(to);
  }
}

// Called after an entry of a worker has completed: advances the entries behind it, and wakes the worker if it
// waited for the entry.
void fabric::settle(worker& it) {
  advance(it);
  if (it.blocked && it.met()) wake(it);
}

void fabric::block_until(lock& l, const rank& r, int lane, std::uint64_t position) {
  worker& me = own(r);
  me.awaited = lane;
  me.position = position;
  block(l, r, me);
}

void fabric::block(lock& l, const rank& r, worker& me) {
  me.action = r.action;
  me.step = r.input.step;
  while (!me.met()) {
    throw_if_failed();
    if (carry_all(l) || look_after_carriage(l)) continue;
    me.blocked = true;
    ++blocked_;
    fail_if_stuck();
    me.wake.wait(l, [&] { return !me.blocked; });
  }
  throw_if_failed();
}

// A worker that has been woken no longer counts as blocked, even before its thread runs.
void fabric::wake(worker& m) {
  m.blocked = false;
  --blocked_;
  m.wake.notify_one();
}

// Only workers make progress. If all active workers are blocked, the step never ends.
void fabric::fail_if_stuck() {
  if (live_ > 0 && blocked_ == live_ && under_way_ == 0 && away_ == 0 && !cause_)
    fail_locked(70, standstill());
}

void fabric::fail(int code, std::string cause) {
  const lock l(mutex_);
  fail_locked(code, std::move(cause));
}

void fabric::fail_locked(int code, std::string cause) {
  if (!cause_) cause_ = failure::reported(code, cause);
  for (worker& each : workers_)
    if (each.blocked) wake(each);
  if (wires_ != nullptr) wires_->stop();
}

void fabric::throw_if_failed() const {
  if (cause_) throw failure(77, "RC5049: this rank stopped, because the step failed: {}", cause_->what());
}

}  // namespace rankc::runtime::host
