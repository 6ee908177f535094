// SPDX-License-Identifier: Apache-2.0
#include "marks.hpp"

#include "../device/check.hpp"
#include "../device/teardown.hpp"
#include "injected.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace rankc::runtime::cuda {

marks::marks(rank& r) : rank_(r), events_(static_cast<std::size_t>(r.where->events)) {
  const std::size_t lanes = r.all_lanes.size();
  void* memory = nullptr;
  check(r, cudaHostAlloc(&memory, lanes * sizeof(std::uint32_t), cudaHostAllocPortable | cudaHostAllocMapped),
        "marks: cudaHostAlloc");
  stored_ = static_cast<volatile std::uint32_t*>(memory);
  std::fill_n(stored_, lanes, 0u);
  for (graph& g : graphs_)
    g = {std::vector<std::vector<entry>>(lanes), std::vector<std::vector<place>>(lanes)};
  r.place = this;
}

marks::~marks() {
  rank_.place = nullptr;
  check_teardown(cudaFreeHost(const_cast<std::uint32_t*>(stored_)), "marks: cudaFreeHost");
}

void marks::hide() {
  const std::lock_guard lock(looking_);
  launched_ = nullptr;
  std::fill_n(stored_, rank_.all_lanes.size(), 0u);
}

void marks::enqueue(std::size_t which) {
  hide();
  end_.forget();
  enqueued_ = &graphs_[which];
  for (auto& lane : enqueued_->lanes) lane.clear();
  for (auto& lane : enqueued_->waits) lane.clear();
}

void marks::store(const lane& on, std::uint32_t value) { store_mark(on, stored_ + on.index, value); }

void marks::begin(const lane& on, const char* name, int communicator) {
  end_.throw_kept();
  const auto lane = static_cast<std::size_t>(on.index);
  std::vector<entry>& entries = enqueued_->lanes[lane];
  const bool is_action = communicator < 0;
  const std::uint32_t actions = (entries.empty() ? 0 : entries.back().actions) + (is_action ? 1 : 0);
  entries.push_back({name, communicator, actions, std::exchange(enqueued_->waits[lane], {})});
  store(on, 2 * static_cast<std::uint32_t>(entries.size()) - 1);
  if (rank_.fault != nullptr && lane == 0 && is_action && enqueued_ == &graphs_[0])
    rank_.fault->enqueue(on, actions);
}

void marks::end(const lane& on) noexcept {
  const std::size_t entries = enqueued_->lanes[static_cast<std::size_t>(on.index)].size();
  end_.keep_of([&] { store(on, 2 * static_cast<std::uint32_t>(entries)); });
}

void marks::record(const lane& on, event e) {
  events_[static_cast<std::size_t>(e.index)] = {
      on.index, static_cast<std::uint32_t>(enqueued_->lanes[static_cast<std::size_t>(on.index)].size())};
}

// An action of lane 0 waits within the action. An entry of another lane waits before it begins.
void marks::wait(const lane& on, event e) {
  const place& what = events_[static_cast<std::size_t>(e.index)];
  const auto lane = static_cast<std::size_t>(on.index);
  if (what.lane == on.index) return;
  std::vector<entry>& entries = enqueued_->lanes[lane];
  if (lane == 0 && !entries.empty()) entries.back().after.push_back(what);
  else enqueued_->waits[lane].push_back(what);
}

void marks::begin_phase(const char* name) {
  hide();
  words_->begin_step(0);
  words_->name(name);
}

void marks::run_enqueued() {
  end_.throw_kept();
  ++launches_;
  launched_ = enqueued_;
}

void marks::launch(std::size_t which, std::int64_t step) {
  end_.throw_kept();
  launched_ = &graphs_[which];
  ++launches_;
  std::fill_n(stored_, rank_.all_lanes.size(), 0u);
  followed_ = 0;
  words_->begin_step(step);
}

std::uint64_t marks::follow() {
  const std::uint32_t now = begun(0);
  if (now == followed_) return words_->calls.load(std::memory_order_relaxed);
  followed_ = now;
  const std::vector<entry>& entries = launched_.load()->lanes[0];
  std::size_t action = now - 1;
  while (action > 0 && entries[action].communicator >= 0) --action;  // goes back to the last action
  words_->name(entries[action].name);
  words_->calls.store(entries[action].actions, std::memory_order_relaxed);
  return entries[action].actions;
}

std::uint32_t marks::begun(int lane) const { return (stored_[lane] + 1) / 2; }
std::uint32_t marks::ended(int lane) const { return stored_[lane] / 2; }

// An action of lane 0 has ended when the next one has begun.
bool marks::is_done(const place& p) const {
  return p.lane == 0 ? begun(0) > p.entries : ended(p.lane) >= p.entries;
}

// The communication at the end of a lane's chain of waits, and its lane; null if the chain ends at a
// computation.
const marks::entry* marks::awaited(const graph& g, int& lane) const {
  for (std::size_t hops = 0; hops <= g.lanes.size(); ++hops) {
    const std::vector<entry>& entries = g.lanes[static_cast<std::size_t>(lane)];
    const std::uint32_t here = begun(lane);
    const bool communicates = !rank_.all_lanes[static_cast<std::size_t>(lane)].computes();
    if (here > ended(lane) && (lane != 0 || entries[here - 1].communicator >= 0))
      return entries[here - 1].communicator >= 0 ? &entries[here - 1] : nullptr;
    const std::size_t at = lane == 0 ? std::size_t{here} - 1 : here;
    if (at >= entries.size()) return nullptr;
    const entry& e = entries[at];
    const auto open =
        std::find_if(e.after.begin(), e.after.end(), [&](const place& p) { return !is_done(p); });
    if (open == e.after.end()) return communicates ? &e : nullptr;
    lane = open->lane;
  }
  return nullptr;
}

std::string marks::under_way() const {
  const std::lock_guard lock(looking_);
  const graph* const g = launched_;
  std::string text;
  for (int lane = 0; g != nullptr && lane < static_cast<int>(g->lanes.size()); ++lane) {
    const auto& entries = g->lanes[static_cast<std::size_t>(lane)];
    std::size_t last = std::min<std::size_t>(begun(lane), entries.size());
    if (lane == 0 && begun(0) == ended(0))  // its action continues after a communication
      while (last > 0 && entries[last - 1].communicator >= 0) --last;
    else if (begun(lane) == ended(lane)) last = 0;
    if (last == 0) continue;
    const entry& e = entries[last - 1];
    text += (text.empty() ? "" : "; ") + std::string(rank_.all_lanes[static_cast<std::size_t>(lane)].name());
    text += ": " + (e.communicator < 0 ? e.name : text_of(e));
  }
  return text.empty() ? "no action" : text;
}

std::string marks::text_of(const entry& e) const {
  const communicator& by = rank_.about->communicators[static_cast<std::size_t>(e.communicator)];
  return std::string("\"") + e.name + "\" (" + name_of(by) + ")";
}

std::string name_of(const communicator& c) {
  constexpr std::size_t most_named = 8;
  std::string ranks;
  for (std::size_t i = 0; i < std::min(c.ranks.size(), most_named); ++i) {
    if (i > 0) ranks += i + 1 == c.ranks.size() ? " and " : ", ";
    ranks += std::to_string(c.ranks[i]);
  }
  if (c.ranks.size() > most_named) ranks += " and " + std::to_string(c.ranks.size() - most_named) + " more";
  return std::string("communicator ") + c.name + " of ranks " + ranks;
}

rank_position marks::look() const {
  const std::lock_guard lock(looking_);
  rank_position s = position_of(*words_);
  const int lanes = static_cast<int>(rank_.all_lanes.size());
  for (int lane = 0; lane < lanes; ++lane) s.moved.push_back(stored_[lane]);
  const graph* const launched = launched_;
  if (!s.in_step || launched == nullptr) return s;
  const graph& g = *launched;
  const std::uint64_t before = launches_.load() << 32;  // communications are numbered from here
  for (const lane& on : rank_.all_lanes)
    for (const lane_link& k : on.links) {
      if (!is_marked(on, k)) continue;
      const auto& entries = g.lanes[static_cast<std::size_t>(on.index)];
      const auto done = std::count_if(
          entries.begin(), entries.begin() + std::min<std::ptrdiff_t>(ended(on.index), std::ssize(entries)),
          [&](const entry& e) { return e.communicator == k.communicator; });
      s.carried.emplace_back(k.communicator, before + static_cast<std::uint64_t>(done));
    }
  int lane = 0;
  const entry* what = awaited(g, lane);
  if (what == nullptr) return s;
  s.waits = true;
  s.awaited = text_of(*what) + " on " + rank_.all_lanes[static_cast<std::size_t>(lane)].name();
  s.communicator = what->communicator;
  for (const auto& [communicator, count] : s.carried)
    if (communicator == what->communicator) s.number = count;
  for (const int other : rank_.about->communicators[static_cast<std::size_t>(what->communicator)].ranks)
    if (other != rank_.index) s.with.push_back(other);
  return s;
}

}  // namespace rankc::runtime::cuda
