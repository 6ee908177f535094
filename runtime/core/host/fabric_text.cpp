// SPDX-License-Identifier: Apache-2.0
// The error texts of the fabric: communications that do not match, and ranks that wait for a communication
// that never comes.
#include "fabric.hpp"
#include "names.hpp"

#include <algorithm>

namespace rankc::runtime::host {

std::string place(int rank, std::int64_t step, const char* action) {
  std::string text = "rank " + std::to_string(rank) + ", step " + std::to_string(step);
  return *action ? text + ", " + action : text;
}

std::string place(const rank& r) { return place(r.index, r.input.step, r.action); }

const char* word(op_kind k) {
  constexpr const char* words[] = {"wait",           "send",       "receive", "all_reduce", "all_gather",
                                   "reduce_scatter", "all_to_all", "shift",   "shift_back", "work"};
  return words[static_cast<std::size_t>(k)];
}

namespace {

// An op as text: all_reduce "loss" (message 3, 64 bytes, f64, sum)
std::string describe(const op& o) {
  std::string text = std::string(word(o.kind)) + " \"" + o.what.name + "\" (message " +
                     std::to_string(o.what.index) + ", " + std::to_string(o.count * o.element) + " bytes";
  if (o.kind != op_kind::send && o.kind != op_kind::receive) text += std::string(", ") + host::name(o.type);
  if (o.kind == op_kind::all_reduce) text += std::string(", ") + host::name(o.reduce);
  return text + ")";
}

}  // namespace

std::string fabric::mismatch(const op& a, const op& b) const {
  const char* const where = about_.communicators[static_cast<std::size_t>(a.communicator)].name;
  const std::string one = place(a.rank, a.step, a.action), other = place(b.rank, b.step, b.action);
  if (a.plan_hash != b.plan_hash)
    return say(
        "RC5051: communicator {}: {}: {} of plan {} is paired with {}: {} of plan {}; all ranks must run one "
        "plan",
        where, one, describe(a), a.plan_hash, other, describe(b), b.plan_hash);
  return say(
      "RC5052: communicator {}: {}: {} is paired with {}: {}; both must have the same message, size and "
      "type, and a send needs a receive",
      where, one, describe(a), other, describe(b));
}

// The communication that a blocked rank waits for, at the end of its chain of waits, and the ranks that have
// not posted it. A wait refers to earlier entries only, so the chain ends.
std::string fabric::awaited_by(worker& me) {
  int lane = me.awaited;
  while (me.on(lane).head().kind == op_kind::wait) lane = me.on(lane).head().awaited;
  const op& o = me.on(lane).head();
  std::string text = place(me.rank, me.step, me.ending ? "end of the step" : me.action) + " waits on " +
                     name(me.rank, lane) + " for ";
  if (o.kind == op_kind::work) return text + o.action;
  text += describe(o) + " of " + (*o.action ? o.action : "no action");
  const meeting& m = meetings_[static_cast<std::size_t>(o.communicator)];
  const char* separator = ": ";
  for (std::size_t i = 0; i < m.front.size(); ++i) {
    const op* theirs = m.front[i];
    const int r = m.ranks[i];
    if (theirs && is_at_head(*theirs)) continue;
    text += separator + ("rank " + std::to_string(r));
    if (theirs) text += std::string(" holds ") + describe(*theirs) + " back on " + name(r, theirs->on);
    else text += first(r).ending ? " has ended its step without it" : " has not posted it";
    separator = ", ";
  }
  return text;
}

std::string fabric::standstill() {
  bool all_ending = true;
  std::string waits;
  for (worker& each : workers_) {
    all_ending = all_ending && (each.ending || each.idle);
    if (each.blocked && !each.idle) waits += (waits.empty() ? "" : "; ") + awaited_by(each);
  }
  if (all_ending)
    return say("RC5053: orphan: the step ends, and this communication has no partner: {}", waits);
  return say("RC5054: deadlock: every rank waits: {}", waits);
}

// The communication for which a rank's thread of lane 0 waits. If that thread waits for an action on another
// lane of the rank, it is the one for which the action's thread waits. A rank that computes does not wait.
void fabric::look(int rank, rank_position& into) {
  const lock l(mutex_);
  worker* at = &first(rank);
  for (worker& each : workers_)
    if (each.rank == rank)
      for (const queue& q : each.queues) into.moved.insert(into.moved.end(), {q.posted, q.completed});
  for (std::size_t c = 0; c < meetings_.size(); ++c) {
    const std::span<const int> ranks = meetings_[c].ranks;
    if (std::find(ranks.begin(), ranks.end(), rank) != ranks.end())
      into.carried.emplace_back(static_cast<int>(c), meetings_[c].done);
  }
  while (at->blocked && !at->idle) {
    int lane = at->awaited;
    while (at->on(lane).head().kind == op_kind::wait) lane = at->on(lane).head().awaited;
    const op& o = at->on(lane).head();
    if (o.kind != op_kind::work) {
      const meeting& m = meetings_[static_cast<std::size_t>(o.communicator)];
      into.waits = true;
      into.awaited = describe(o) + " on " + name(rank, lane);
      into.communicator = o.communicator;
      into.number = m.done;
      for (const int other : m.ranks)
        if (other != rank) into.with.push_back(other);
      return;
    }
    const std::vector<int>& of_lanes = worker_of_[static_cast<std::size_t>(rank)];
    at = &workers_[static_cast<std::size_t>(of_lanes[static_cast<std::size_t>(lane)])];
  }
}

}  // namespace rankc::runtime::host
