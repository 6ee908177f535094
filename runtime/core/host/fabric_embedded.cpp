// SPDX-License-Identifier: Apache-2.0
// The fabric of ranks that an application steps. Each rank enters a step when the application calls it. The
// application carries out the communication with other processes.
#include "fabric.hpp"

#include <rankc/runtime/host/embedded.hpp>

#include <algorithm>

namespace rankc::runtime::host {

fabric::fabric(const description& about, carriage& by, int own) : fabric(about, nullptr, own) {
  carriage_ = &by;
}

void fabric::expect_ranks_one_by_one() {
  come_back_ = true;
  away_ = about_.world();
}

// Gives the application this rank's communication when it reaches the head of its lane. Blocked threads poll
// for its end.
void fabric::hand_to_application(meeting& m) {
  const auto mine = std::find_if(m.front.begin(), m.front.end(), [](const op* o) { return o != nullptr; });
  if (mine == m.front.end() || !is_at_head(**mine)) return;
  const op& o = **mine;
  m.moving = true;
  ++under_way_;
  constexpr carriage::kind kinds[] = {carriage::kind::send,           carriage::kind::receive,
                                      carriage::kind::all_reduce,     carriage::kind::all_gather,
                                      carriage::kind::reduce_scatter, carriage::kind::all_to_all,
                                      carriage::kind::shift,          carriage::kind::shift_back};
  carriage_->start({.kind = kinds[static_cast<int>(o.kind) - static_cast<int>(op_kind::send)],
                    .communicator = o.communicator,
                    .to = o.to,
                    .from = o.from,
                    .second_to = o.second_to,
                    .second_from = o.second_from,
                    .count = o.count,
                    .type = o.type,
                    .how = o.reduce,
                    .name = o.what.name,
                    .second_count = o.second_count});
  for (worker& each : workers_)
    if (each.blocked) wake(each);
}

// Polls the active communications. Returns true if there are any; the blocked thread then polls again.
bool fabric::look_after_carriage(lock& l) {
  if (carriage_ == nullptr || under_way_ == 0) return false;
  for (std::size_t c = 0; c < meetings_.size(); ++c) {
    meeting& m = meetings_[c];
    if (!m.moving) continue;
    const carriage::state state = carriage_->look(static_cast<int>(c));
    if (state == carriage::state::under_way) continue;
    --under_way_;
    if (state == carriage::state::failed)
      fail_locked(70, say("RC5050: the application could not carry the message on communicator {}",
                          about_.communicators[c].name));
    else complete(m);
    return true;
  }
  l.unlock();
  std::this_thread::yield();
  l.lock();
  return true;
}

}  // namespace rankc::runtime::host
