// SPDX-License-Identifier: Apache-2.0
// Streams, meetings and blocking of the fabric. All state is under one lock; only data moves outside it.
#include "fabric.hpp"

#include "tracer.hpp"

#include <algorithm>

namespace rankc::host {

constexpr std::size_t chunk_bytes = 128 * 1024;  // what one thread moves at a time

fabric::fabric(const description& about)
    : about_(about), ranks_(std::make_unique<member_state[]>(about.ranks.size())) {
  for (std::size_t r = 0; r < about.ranks.size(); ++r)
    ranks_[r].events.resize(static_cast<std::size_t>(about.layouts[about.ranks[r].pp].events));
  for (const runtime::communicator& c : about.communicators) {
    meeting& m = meetings_.emplace_back();
    m.ranks = c.ranks;
    m.front.resize(c.ranks.size());
    m.back.resize(c.ranks.size());
  }
}

void fabric::start_step() {
  live_ = static_cast<int>(about_.ranks.size());
  for (std::size_t r = 0; r < about_.ranks.size(); ++r) {
    ranks_[r].ending = false;
    std::fill(ranks_[r].events.begin(), ranks_[r].events.end(), mark{});
  }
}

void fabric::finish(const rank& r) {
  lock l(mutex_);
  member_state& me = ranks_[r.index];
  me.ending = true;
  for (int s = 0; s < n_streams; ++s) block_until(l, r, stream{s}, me.queues[s].posted);
  --live_;
  fail_if_stuck();
}

fabric::mark& fabric::find(const rank& r, event e) {
  std::vector<mark>& events = ranks_[r.index].events;
  if (e.index < 0 || static_cast<std::size_t>(e.index) >= events.size())
    throw failure(70, "event " + std::to_string(e.index) + " is not one of the " +
                          std::to_string(events.size()) + " events of this rank's layout");
  return events[static_cast<std::size_t>(e.index)];
}

// Events and `posted` are the rank's own: only its thread writes them, so that reading them here needs no
// lock.
void fabric::record(const rank& r, stream s, event e) {
  find(r, e) = {s, ranks_[r.index].on(s).posted, true};
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
  if (ranks_[r.index].on(m.on).completed >= m.position) return;
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
  while (carry_one(l)) {
  }
  if (o.on == stream::compute) block_until(l, r, o.on, ranks_[r.index].on(o.on).posted);
  throw_if_failed();
}

void fabric::append(lock& l, const rank& r, stream s, const op& o) {
  queue& q = ranks_[r.index].on(s);
  if (q.posted == q.completed + capacity) block_until(l, r, s, q.completed + 1);
  op& entry = q.ring[q.posted % capacity];
  entry = o;
  entry.on = s;
  entry.rank = r.index;
  entry.next = nullptr;
  ++q.posted;
  if (entry.kind != op_kind::wait) {
    meeting& m = meetings_[static_cast<std::size_t>(o.communicator)];
    op*& back = m.back[static_cast<std::size_t>(o.member)];
    (back ? back->next : m.front[static_cast<std::size_t>(o.member)]) = &entry;
    back = &entry;
  }
  advance(r.index);
}

// Retire the waits at the heads of a rank's streams that are satisfied, then start what can start.
void fabric::advance(int rank) {
  member_state& me = ranks_[rank];
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
    if (!q.empty() && q.head().kind != op_kind::wait)
      try_start(meetings_[static_cast<std::size_t>(q.head().communicator)]);
}

void fabric::try_start(meeting& m) {
  if (m.moving) return;
  const op* first = nullptr;
  bool all_ready = true;
  for (op* o : m.front) {
    all_ready = all_ready && o && &ranks_[o->rank].on(o->on).head() == o;
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
  for (std::size_t r = 0; r < about_.ranks.size() && helpers > 0; ++r)
    if (ranks_[r].blocked) {
      wake(ranks_[r]);
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

void fabric::complete(meeting& m) {
  m.moving = false;
  for (std::size_t i = 0; i < m.front.size(); ++i) {
    op* done = m.front[i];
    if (done->times != nullptr) done->times->end = now();
    m.front[i] = done->next;
    if (!done->next) m.back[i] = nullptr;
    ++ranks_[done->rank].on(done->on).completed;
  }
  for (int r : m.ranks) {
    advance(r);
    member_state& it = ranks_[r];
    if (it.blocked && it.on(it.awaited).completed >= it.position) wake(it);
  }
}

void fabric::block_until(lock& l, const rank& r, stream s, std::uint64_t position) {
  member_state& me = ranks_[r.index];
  while (me.on(s).completed < position) {
    throw_if_failed();
    if (carry_one(l)) continue;
    me.blocked = true;
    me.awaited = s;
    me.position = position;
    me.action = r.action;
    me.step = r.input.step;
    ++blocked_;
    fail_if_stuck();
    me.wake.wait(l, [&] { return !me.blocked; });
  }
  throw_if_failed();
}

// A rank that is woken no longer counts as waiting, even before its thread runs.
void fabric::wake(member_state& m) {
  m.blocked = false;
  --blocked_;
  m.wake.notify_one();
}

// Only ranks make progress: when each one that is left waits, none ever will.
void fabric::fail_if_stuck() {
  if (live_ > 0 && blocked_ == live_ && !cause_) fail_locked(70, standstill());
}

void fabric::fail(int code, std::string cause) {
  const lock l(mutex_);
  fail_locked(code, std::move(cause));
}

void fabric::fail_locked(int code, std::string cause) {
  if (!cause_) cause_.emplace(code, cause);
  for (std::size_t r = 0; r < about_.ranks.size(); ++r)
    if (ranks_[r].blocked) wake(ranks_[r]);
}

void fabric::throw_if_failed() const {
  if (cause_) throw failure(77, std::string("stopped, because the step has failed: ") + cause_->what());
}

}  // namespace rankc::host
