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
    : about_(about), row_(about.ranks[static_cast<std::size_t>(rank)]), queues_(where().lanes.size()) {
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

recorder::queue& recorder::on(int lane) {
  if (acting_on_ != 0 && lane != acting_on_)
    misuse(std::string("an action on lane ") + name(acting_on_) + " uses lane " + name(lane));
  return queues_[static_cast<std::size_t>(lane)];
}

call& recorder::add(std::string function, int lane) {
  if (acting_on_ == 0 && lane != 0 && where().lanes[static_cast<std::size_t>(lane)].computes)
    misuse(function + " is put on lane " + name(lane) + " by no action");
  queue& q = on(lane);
  const bool by_rows = lane == by_rows_on_ && function == by_rows_;
  if (by_rows) by_rows_.clear();
  out_.calls.push_back({.function = std::move(function),
                        .lane = lane,
                        .by_rows = by_rows,
                        .waits = std::exchange(q.waits, {})});
  q.last = {static_cast<int>(out_.calls.size()) - 1};
  return out_.calls.back();
}

void recorder::move_by_rows(std::string function, int lane) {
  if (!by_rows_.empty()) misuse("rows move by " + function + " while those of " + by_rows_ + " do");
  by_rows_ = std::move(function);
  by_rows_on_ = lane;
}

communication recorder::meet(int lane, runtime::over what, const runtime::message& site, std::size_t bytes) {
  for (const runtime::lane_communicator& k : row_.links)
    if (k.lane == lane && k.over == what) {
      const runtime::communicator& found = about_.communicators[static_cast<std::size_t>(k.communicator)];
      return {site.index, site.name, found.name, {found.ranks.begin(), found.ranks.end()}, bytes};
    }
  misuse_in_call(std::string("\"") + site.name + "\" has no communicator over " +
                 runtime::over_names[static_cast<int>(what)] + " on lane " + name(lane));
  return {site.index, site.name, "", {}, bytes};
}

void recorder::mark(int lane, runtime::event e) {
  if (e.index < 0 || e.index >= where().events)
    misuse("event " + std::to_string(e.index) + " is not in the layout");
  const queue& q = on(lane);
  std::vector<int> ends = q.last;
  join(ends, q.waits);
  events_[e.index] = ends;
}

void recorder::wait(int lane, runtime::event e) {
  const auto known = events_.find(e.index);
  if (known == events_.end())
    misuse("a wait for event " + std::to_string(e.index) + ", which is not recorded before");
  else join(on(lane).waits, known->second);
}

void recorder::follow(int next, int before) {
  if (next == before) return;
  const queue& q = on(before);
  std::vector<int> ends = q.last;
  join(ends, q.waits);
  join(on(next).waits, ends);
}

void recorder::enter_action(int lane) {
  if (lane == 0 || !where().lanes[static_cast<std::size_t>(lane)].computes)
    misuse(std::string("an action on lane ") + name(lane) + ", which is not one beside lane 0 that computes");
  acting_on_ = lane;
}

recording recorder::finish() {
  if (!by_rows_.empty()) misuse("rows are to move by " + by_rows_ + ", which is not called");
  for (const queue& q : queues_) out_.end_waits.push_back(q.waits);
  for (const runtime::lane_row& lane : where().lanes) out_.lanes.push_back(lane.name);
  return std::move(out_);
}

void within_documents(const char* function, at starts, std::size_t count) {
  call& c = recorder::active().last();
  c.function = function;
  c.operands.push_back(starts.byte);
  c.reads.push_back({starts.byte, count * sizeof(std::int32_t)});
}
void within_documents(const char* function, at starts, std::size_t count, at scratch, std::size_t bytes) {
  within_documents(function, starts, count);
  for (area& a : recorder::active().last().writes)
    if (a.begin == scratch.byte) a = {scratch.byte, bytes};
}

}  // namespace translation
