// SPDX-License-Identifier: Apache-2.0
// Communications of the fabric. They start when all members have posted. The available threads move the data
// in chunks.
#include "fabric.hpp"

#include "tracer.hpp"

#include <algorithm>

namespace rankc::runtime::host {

constexpr std::size_t chunk_bytes = 128 * 1024;  // moved at a time by one thread

void fabric::try_start(meeting& m) {
  if (m.moving) return;
  if (m.by != nullptr) return give(m);
  if (carriage_ != nullptr) return hand_to_application(m);
  const op* first = nullptr;
  bool all_ready = true;
  for (op* o : m.front) {
    all_ready = all_ready && o && is_at_head(*o);
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
  for (auto it = workers_.begin(); it != workers_.end() && helpers > 0; ++it)
    if (it->blocked) {
      wake(*it);
      --helpers;
    }
}

// Takes one chunk of a communication and moves it without the lock. Returns false if no chunk is left.
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

// Repeats until no chunk is left, because other threads may be asleep when a transfer makes the next one
// possible.
bool fabric::carry_all(lock& l) {
  bool any = false;
  while (carry_one(l)) any = true;
  return any;
}

void fabric::complete(meeting& m) {
  m.moving = false;
  ++m.done;
  for (std::size_t i = 0; i < m.front.size(); ++i) {
    op* done = m.front[i];
    if (done == nullptr) continue;  // a rank of another process
    if (done->times != nullptr) done->times->end = now();
    if (carried_ != nullptr)
      carried_->push_back({done->rank, done->communicator, word(done->kind), done->what.name, done->action,
                           done->reduce, done->count, done->element});
    m.front[i] = done->next;
    if (!done->next) m.back[i] = nullptr;
    ++workers_[static_cast<std::size_t>(done->worker)].on(done->on).completed;
  }
  for (int r : m.ranks)
    for (int w : worker_of_[static_cast<std::size_t>(r)])
      if (w >= 0) settle(workers_[static_cast<std::size_t>(w)]);
}

}  // namespace rankc::runtime::host
