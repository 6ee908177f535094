// SPDX-License-Identifier: Apache-2.0
// The fabric of one rank whose partners are other processes. The thread of a communicator carries out the
// communication at the head of its lane.
#include "fabric.hpp"

#include "tracer.hpp"

#include <algorithm>

namespace rankc::runtime::host {
namespace {

std::string place_and_call(const op& o) {
  return place(o.rank, o.step, o.action) + ": " + word(o.kind) + " \"" + o.what.name + "\": ";
}

}  // namespace

void fabric::connect(runtime::transport& wires, int own) try {
  for (std::size_t c = 0; c < meetings_.size(); ++c) {
    meeting& m = meetings_[c];
    if (std::find(m.ranks.begin(), m.ranks.end(), own) == m.ranks.end()) continue;
    m.by = std::make_unique<carrier>(wires, m.ranks, static_cast<int>(c), own,
                                     [this](const op& a, const op& b) { return mismatch(a, b); });
    carriers_.emplace_back([this, &m] { serve(m); });
  }
} catch (...) {  // the process can have no more threads
  end_carriers();
  throw;
}

fabric::~fabric() { end_carriers(); }

void fabric::end_carriers() {
  {
    const lock l(mutex_);
    ending_ = true;
    if (wires_ != nullptr) wires_->stop();
  }
  for (meeting& m : meetings_) m.given.notify_all();
  for (std::thread& each : carriers_) each.join();
}

// Gives the carrier's thread this rank's communication when it reaches the head of its lane. The other ranks'
// may come later; the thread waits for them.
void fabric::give(meeting& m) {
  const auto mine = std::find_if(m.front.begin(), m.front.end(), [](const op* o) { return o != nullptr; });
  if (mine == m.front.end() || !is_at_head(**mine)) return;
  m.moving = true;
  m.carried = *mine;
  ++under_way_;
  m.given.notify_one();
}

void fabric::serve(meeting& m) {
  lock l(mutex_);
  for (;;) {
    m.given.wait(l, [&] { return m.carried != nullptr || ending_; });
    if (ending_) return;
    const op o = *m.carried;  // copied under the lock, because `append` writes the entry's `next`
    l.unlock();
    if (o.times != nullptr) o.times->begin = now();
    std::optional<failure> failed;
    try {
      if (o.is_lost) m.by->lose(o);
      else m.by->carry(o);
    } catch (const failure& f) {
      failed = failure::reported(f.code, place_and_call(o) + f.what());
    } catch (const std::exception& e) {
      failed =
          failure::reported(70, place_and_call(o) + say("RC5065: the communication ended: {}", e.what()));
    }
    l.lock();
    m.carried = nullptr;
    --under_way_;
    if (failed) return fail_locked(failed->code, failed->what());
    complete(m);
  }
}

}  // namespace rankc::runtime::host
