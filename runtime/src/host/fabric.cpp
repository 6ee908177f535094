// SPDX-License-Identifier: Apache-2.0
// Streams, meetings and blocking of the fabric. All state is under one lock; only data moves outside it.
#include "fabric.hpp"

#include "tracer.hpp"

#include <algorithm>

namespace rankc::host {

constexpr std::size_t chunk_bytes = 128 * 1024;  // what one thread moves at a time

fabric::fabric(const description& about) : about_(about), second_(about.ranks.size(), -1) {
  const auto where = [&](std::size_t r) -> const layout& {
    return about.layouts[static_cast<std::size_t>(about.ranks[r].pp)];
  };
  std::size_t lanes = about.ranks.size();
  for (std::size_t r = 0; r < second_.size(); ++r)
    if (where(r).overlaps) second_[r] = static_cast<int>(lanes++);
  lanes_ = std::vector<lane>(lanes);
  for (std::size_t r = 0; r < second_.size(); ++r) {
    lanes_[r].rank = static_cast<int>(r);
    lanes_[r].events.resize(static_cast<std::size_t>(where(r).events));
    if (second_[r] < 0) continue;
    lanes_[second_[r]].rank = static_cast<int>(r);
    lanes_[second_[r]].second = true;
  }
  for (const runtime::communicator& c : about.communicators) {
    meeting& m = meetings_.emplace_back();
    m.ranks = c.ranks;
    m.front.resize(c.ranks.size());
    m.back.resize(c.ranks.size());
  }
}

int fabric::lane_of(const rank& r) const { return r.computes_on == stream::beside ? second_[r.index] : r.index; }

void fabric::start_step() {
  live_ = static_cast<int>(lanes_.size());
  for (lane& each : lanes_) {
    each.ending = false;
    std::fill(each.events.begin(), each.events.end(), mark{});
  }
}

void fabric::finish(const rank& r) {
  lock l(mutex_);
  lane& me = lanes_[lane_of(r)];
  me.ending = true;
  if (!me.second && second_[r.index] >= 0) {
    op last;
    last.kind = op_kind::work;
    append(l, r, stream::beside, last);
  }
  for (int s = 0; s < n_streams; ++s) block_until(l, r, stream{s}, me.queues[s].posted);
  --live_;
  fail_if_stuck();
}

fabric::mark& fabric::find(const rank& r, event e) {
  std::vector<mark>& events = lanes_[r.index].events;
  if (e.index < 0 || static_cast<std::size_t>(e.index) >= events.size())
    throw failure(70, "event " + std::to_string(e.index) + " is not one of the " +
                          std::to_string(events.size()) + " events of this rank's layout");
  return events[static_cast<std::size_t>(e.index)];
}

// Events and `posted` are the rank's own: only its thread writes them, so that reading them here needs no
// lock.
void fabric::record(const rank& r, stream s, event e) {
  find(r, e) = {s, lanes_[r.index].on(s).posted, true};
}

void fabric::wait(const rank& r, stream s, event e) {
  const mark m = find(r, e);
  if (!m.recorded)
    throw failure(70, "event " + std::to_string(e.index) +
                          " is waited for before this step records it; a wait must follow its record");
  if (m.on == s || m.on == stream::compute) return;
  lock l(mutex_);
  throw_if_failed();
  if (s == stream::compute) return block_until(l, r, m.on, m.position);
  if (lanes_[r.index].on(m.on).completed >= m.position) return;
  op held;
  held.awaited = m.on;
  held.position = m.position;
  append(l, r, s, held);
}

void fabric::post(const rank& r, op o) {
  lock l(mutex_);
  throw_if_failed();
  o.plan_hash = r.about->plan_hash;
  o.action = r.action;
  o.step = r.input.step;
  append(l, r, o.on, o);
  carry_all(l);
  if (o.on == stream::compute) block_until(l, r, o.on, lanes_[lane_of(r)].on(o.on).posted);
  throw_if_failed();
}

void fabric::post_beside(const rank& r, const op& o) {
  lock l(mutex_);
  throw_if_failed();
  if (second_[r.index] < 0)
    throw failure(70, std::string(o.action) +
                          " is to run on stream beside, and the rank's layout says that nothing does");
  append(l, r, stream::beside, o);
}

void fabric::run_beside(rank& r) {
  lock l(mutex_);
  lane& me = lanes_[lane_of(r)];
  for (bool more = true; more;) {
    me.idle = true;
    block(l, r, me);
    me.idle = false;
    const op& o = *me.work;
    more = o.work != nullptr;
    if (more) {
      l.unlock();
      r.action = o.action;
      if (o.times != nullptr) o.times->begin = now();
      o.work(r);
      if (o.times != nullptr) o.times->end = now();
      l.lock();
    }
    me.work = nullptr;
    ++lanes_[r.index].on(stream::beside).completed;
    settle(r.index);
    carry_all(l);
  }
}

void fabric::append(lock& l, const rank& r, stream s, const op& o) {
  const int mine = lane_of(r);
  queue& q = lanes_[mine].on(s);
  if (q.posted == q.completed + capacity) block_until(l, r, s, q.completed + 1);
  op& entry = q.ring[q.posted % capacity];
  entry = o;
  entry.on = s;
  entry.rank = r.index;
  entry.lane = mine;
  entry.next = nullptr;
  ++q.posted;
  if (entry.communicator >= 0) {
    meeting& m = meetings_[static_cast<std::size_t>(o.communicator)];
    op*& back = m.back[static_cast<std::size_t>(o.member)];
    (back ? back->next : m.front[static_cast<std::size_t>(o.member)]) = &entry;
    back = &entry;
  }
  advance(mine);
}

// Retire the waits at the heads of a lane's streams that are satisfied, then start what can start.
void fabric::advance(int which) {
  lane& me = lanes_[which];
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

// Give the work at the head of stream::beside to the rank's second thread.
void fabric::hand_over(lane& from) {
  queue& q = from.on(stream::beside);
  if (q.empty() || q.head().kind != op_kind::work) return;
  lane& to = lanes_[second_[from.rank]];
  to.work = &q.head();
  if (to.blocked && to.met()) wake(to);
}

// Something of a lane has completed: go on with what stood behind it, and wake the lane if it waited for that.
void fabric::settle(int which) {
  advance(which);
  lane& it = lanes_[which];
  if (it.blocked && it.met()) wake(it);
}

void fabric::try_start(meeting& m) {
  if (m.moving) return;
  const op* first = nullptr;
  bool all_ready = true;
  for (op* o : m.front) {
    all_ready = all_ready && o && &lanes_[o->lane].on(o->on).head() == o;
    if (o && first && !agree(*first, *o)) return fail_locked(70, mismatch(*first, *o));
    if (o && !first) first = o;
  }
  if (!all_ready) return;
  m.moving = true;
  for (op* o : m.front)
    if (o->times != nullptr) o->times->begin = now();
  m.chunk = chunk_bytes / first->element;
  m.chunks = m.chunks_left = std::max<std::size_t>(1, (extent(m.front) + m.chunk - 1) / m.chunk);
  m.next_chunk = 0;
  m.next_to_carry = to_carry_;
  to_carry_ = &m;
  std::size_t helpers = m.chunks - 1;
  for (auto it = lanes_.begin(); it != lanes_.end() && helpers > 0; ++it)
    if (it->blocked) {
      wake(*it);
      --helpers;
    }
}

// Take one chunk of a meeting and move it without the lock; false if there is none to take.
bool fabric::carry_one(lock& l) {
  if (!to_carry_) return false;
  meeting& m = *to_carry_;
  const std::size_t first = m.next_chunk++ * m.chunk;
  if (m.next_chunk == m.chunks) to_carry_ = m.next_to_carry;
  l.unlock();
  move_elements(m.front, first, std::min(first + m.chunk, extent(m.front)));
  l.lock();
  if (--m.chunks_left == 0) complete(m);
  return true;
}

// Until there is none: what one transfer makes possible may have no other thread awake to carry it.
bool fabric::carry_all(lock& l) {
  bool any = false;
  while (carry_one(l)) any = true;
  return any;
}

void fabric::complete(meeting& m) {
  m.moving = false;
  for (std::size_t i = 0; i < m.front.size(); ++i) {
    op* done = m.front[i];
    if (done->times != nullptr) done->times->end = now();
    m.front[i] = done->next;
    if (!done->next) m.back[i] = nullptr;
    ++lanes_[done->lane].on(done->on).completed;
  }
  for (int r : m.ranks) {
    settle(r);
    if (second_[r] >= 0) settle(second_[r]);
  }
}

void fabric::block_until(lock& l, const rank& r, stream s, std::uint64_t position) {
  lane& me = lanes_[lane_of(r)];
  me.awaited = s;
  me.position = position;
  block(l, r, me);
}

void fabric::block(lock& l, const rank& r, lane& me) {
  me.action = r.action;
  me.step = r.input.step;
  while (!me.met()) {
    throw_if_failed();
    if (carry_all(l)) continue;
    me.blocked = true;
    ++blocked_;
    fail_if_stuck();
    me.wake.wait(l, [&] { return !me.blocked; });
  }
  throw_if_failed();
}

// A lane that is woken no longer counts as waiting, even before its thread runs.
void fabric::wake(lane& m) {
  m.blocked = false;
  --blocked_;
  m.wake.notify_one();
}

// Only lanes make progress: when each one that is left waits, none ever will.
void fabric::fail_if_stuck() {
  if (live_ > 0 && blocked_ == live_ && !cause_) fail_locked(70, standstill());
}

void fabric::fail(int code, std::string cause) {
  const lock l(mutex_);
  fail_locked(code, std::move(cause));
}

void fabric::fail_locked(int code, std::string cause) {
  if (!cause_) cause_.emplace(code, cause);
  for (lane& each : lanes_)
    if (each.blocked) wake(each);
}

void fabric::throw_if_failed() const {
  if (cause_) throw failure(77, std::string("stopped, because the step has failed: ") + cause_->what());
}

}  // namespace rankc::host
