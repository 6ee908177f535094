// SPDX-License-Identifier: Apache-2.0
#include "recorder.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace translation {

namespace {

recorder* active_one = nullptr;

void join(std::vector<int>& into, const std::vector<int>& more) {
  into.insert(into.end(), more.begin(), more.end());
  std::sort(into.begin(), into.end());
  into.erase(std::unique(into.begin(), into.end()), into.end());
}

}  // namespace

recorder::recorder(const runtime::description& about, int rank)
    : about_(about), row_(about.ranks[static_cast<std::size_t>(rank)]) {
  active_one = this;
}
recorder::~recorder() { active_one = nullptr; }

recorder& recorder::active() {
  if (!active_one) throw std::logic_error("a program runs that nobody records");
  return *active_one;
}

void recorder::misuse(std::string sentence, std::size_t at) {
  if (!out_.fault.empty()) return;
  out_.fault = std::move(sentence);
  out_.fault_at = at;
}

int recorder::index(runtime::stream s) {
  if (!beside_) return static_cast<int>(s);
  if (s != runtime::stream::compute)
    misuse(std::string("an action on stream beside uses stream ") +
           runtime::stream_names[static_cast<int>(s)]);
  return static_cast<int>(runtime::stream::beside);
}

call& recorder::add(std::string function, runtime::stream s) {
  const int i = index(s);
  queue& q = queues_[i];
  out_.calls.push_back({.function = std::move(function), .stream = i, .waits = std::exchange(q.waits, {})});
  q.last = {static_cast<int>(out_.calls.size()) - 1};
  return out_.calls.back();
}

communication recorder::meet(runtime::role over, const runtime::message& site, std::size_t bytes) {
  if (beside_ && over == runtime::role::tp) over = runtime::role::tp_beside;
  const int c = row_.communicator[static_cast<int>(over)];
  if (c < 0) {
    misuse_in_call(std::string("\"") + site.name + "\" has no communicator for role " +
                   runtime::role_names[static_cast<int>(over)]);
    return {site.index, site.name, "", {}, bytes};
  }
  const runtime::communicator& found = about_.communicators[static_cast<std::size_t>(c)];
  return {site.index, site.name, found.name, {found.ranks.begin(), found.ranks.end()}, bytes};
}

void recorder::mark(runtime::stream s, runtime::event e) {
  if (e.index < 0 || e.index >= where().events)
    misuse("event " + std::to_string(e.index) + " is not in the layout");
  const queue& q = queues_[index(s)];
  std::vector<int> ends = q.last;
  join(ends, q.waits);
  events_[e.index] = ends;
}

void recorder::wait(runtime::stream s, runtime::event e) {
  const auto known = events_.find(e.index);
  if (known == events_.end())
    misuse("a wait for event " + std::to_string(e.index) + ", which is not recorded before");
  else join(queues_[index(s)].waits, known->second);
}

void recorder::enter_beside() {
  if (!where().overlaps) misuse("an action on stream beside, where the layout does not overlap");
  beside_ = true;
}

recording recorder::finish() {
  for (const queue& q : queues_) out_.end_waits.push_back(q.waits);
  return std::move(out_);
}

}  // namespace translation
