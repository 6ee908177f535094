// SPDX-License-Identifier: Apache-2.0
#include "watch.hpp"

#include <rankc/launch/frame.hpp>
#include <rankc/launch/hello.hpp>
#include <rankc/runtime/failure.hpp>

#include <algorithm>
#include <tuple>

namespace rankc::runtime {
namespace {

constexpr int signs_missed = 2;
constexpr std::size_t most_in_circle = 8;  // ranks in one sentence
constexpr double least_seconds = 30, times_longest = 20;

void add(std::string& all, const std::string& sentence) { all += (all.empty() ? "" : "; and ") + sentence; }

}  // namespace

/// The install counts as step 0.
bool in_install(const rank_position& s) { return s.in_step && s.step == 0; }
bool in_training(const rank_position& s) { return s.in_step && s.step > 0; }

std::string text_of(const rank_position& s) {
  return in_install(s) ? "in the install (" + s.action + ")" : s.text();
}

std::string pack(const rank_position& s) {
  body_writer out;
  const auto number = [&](auto n) { out.add(static_cast<std::uint64_t>(n)); };
  number(s.step);
  number(s.calls);
  out.add(s.action);
  number(s.in_step);
  number(s.waits);
  out.add(s.awaited);
  number(s.with.size());
  for (const int rank : s.with) number(rank);
  number(s.communicator);
  number(s.number);
  number(s.carried.size());
  for (const auto& [communicator, count] : s.carried) {
    number(communicator);
    number(count);
  }
  number(s.moved.size());
  for (const std::uint64_t word : s.moved) number(word);
  return out.take();
}

rank_position unpack_position(const std::string& body) {
  body_reader in(body);
  rank_position s;
  s.step = static_cast<std::int64_t>(in.number());
  s.calls = in.number();
  s.action = in.text();
  s.in_step = in.number() != 0;
  s.waits = in.number() != 0;
  s.awaited = in.text();
  for (std::uint64_t left = in.number(); left > 0; --left) s.with.push_back(static_cast<int>(in.number()));
  s.communicator = static_cast<int>(in.number());
  s.number = in.number();
  for (std::uint64_t left = in.number(); left > 0; --left) {
    const int communicator = static_cast<int>(in.number());
    s.carried.emplace_back(communicator, in.number());
  }
  for (std::uint64_t left = in.number(); left > 0; --left) s.moved.push_back(in.number());
  return s;
}

void watch::hear(int rank, rank_position s, deadline now) {
  rank_position& known = ranks_[rank];
  heard_[rank] = now;
  if (known.moved != s.moved || known.moved.empty()) {
    if (is_each_in_step()) longest_ = std::max(longest_, now - last_move_);
    last_move_ = now;
  }
  a_step_is_done_ = a_step_is_done_ || (in_training(known) && (!s.in_step || s.step > known.step));
  known = std::move(s);
}

void watch::excuse(deadline::duration away) {
  last_move_ += away;
  for (auto& [rank, at] : heard_) at += away;
}

std::string watch::last_place(int rank) const {
  const auto found = ranks_.find(rank);
  return found != ranks_.end() ? text_of(found->second) : "";
}

std::string watch::work_of(int rank) const {
  const auto found = ranks_.find(rank);
  if (found == ranks_.end()) return "at an unknown position";
  const rank_position& s = found->second;
  return s.waits ? text_of(s) + " and waits for " + s.awaited : text_of(s);
}

bool watch::is_each_in_step() const {
  return std::all_of(ranks_.begin(), ranks_.end(),
                     [](const auto& entry) { return in_training(entry.second); });
}

bool watch::all_in_step(const std::vector<int>& roots) const {
  return std::all_of(roots.begin(), roots.end(), [&](int r) { return ranks_.at(r).in_step; });
}

bool watch::is_in_install(const std::vector<int>& roots) const {
  return std::any_of(roots.begin(), roots.end(), [&](int r) { return in_install(ranks_.at(r)); });
}

// The ranks that do not wait for others; if all wait, the ranks with the least progress.
std::vector<int> watch::roots() const {
  std::vector<int> found;
  for (const auto& [rank, s] : ranks_)
    if (!s.waits) found.push_back(rank);
  if (!found.empty()) return found;
  const auto progress = [](const auto& entry) { return std::tuple(entry.second.step, entry.second.calls); };
  const auto least = std::min_element(
      ranks_.begin(), ranks_.end(), [&](const auto& a, const auto& b) { return progress(a) < progress(b); });
  for (const auto& entry : ranks_)
    if (progress(entry) == progress(*least)) found.push_back(entry.first);
  return found;
}

// A cycle of ranks in which each waits for the next. The rank with the fewest calls need not be at fault:
// stages have different numbers of calls.
std::vector<int> watch::circle_from(int rank) const {
  std::vector<int> chain;
  for (auto known = ranks_.find(rank); known != ranks_.end() && known->second.waits;
       known = ranks_.find(rank)) {
    const auto before = std::find(chain.begin(), chain.end(), rank);
    if (before != chain.end()) return {before, chain.end()};
    chain.push_back(rank);
    if (known->second.with.empty()) return {};
    rank = known->second.with.front();
  }
  return {};
}

// A message is lost if a rank waits for a communication that its peer has completed.
std::string watch::lost_between() const {
  std::string text;
  for (const auto& [rank, s] : ranks_) {
    if (!s.waits || s.communicator < 0) continue;
    for (const int other : s.with) {
      const auto theirs = ranks_.find(other);
      if (theirs == ranks_.end()) continue;
      for (const auto& [communicator, count] : theirs->second.carried)
        if (communicator == s.communicator && count > s.number)
          add(text, say("RC5350: {} is {} and waits for {}, but {} has completed its part; the message was "
                        "lost between them",
                        who_(rank), text_of(s), s.awaited, who_(other)));
    }
  }
  return text;
}

// The ranks that wait for this one; empty if none does.
std::string watch::waits_of(int root) const {
  std::vector<int> waiting;
  for (const auto& [rank, s] : ranks_)
    if (s.waits && std::find(s.with.begin(), s.with.end(), root) != s.with.end()) waiting.push_back(rank);
  if (waiting.empty()) return "";
  const rank_position& first = ranks_.at(waiting.front());
  return say("RC5351: these ranks wait for rank {}: {}. Rank {} waits {} for {}", root, ranks_text(waiting),
             waiting.front(), text_of(first), first.awaited);
}

// The position of a rank that holds up the others, and the ranks that wait for it.
std::string watch::hold_up_of(int rank) const {
  const rank_position& s = ranks_.at(rank);
  std::string text = s.waits
                         ? say("RC5352: {} is stuck {}, and waits for {}", who_(rank), text_of(s), s.awaited)
                         : say("RC5353: {} is stuck {}, in computation or other code outside communication",
                               who_(rank), text_of(s));
  if (const std::string waits = waits_of(rank); !waits.empty()) text += "; " + waits;
  return text;
}

std::optional<watch::verdict> watch::judge(deadline now) const {
  using seconds = std::chrono::duration<double>;
  const bool any_in_step =
      std::any_of(ranks_.begin(), ranks_.end(), [](const auto& entry) { return entry.second.in_step; });
  if (!any_in_step || heard_.size() > ranks_.size()) return std::nullopt;
  for (const auto& [rank, at] : heard_)
    if (now - at > signs_missed * limits_.sign_of_life())
      return std::nullopt;  // it may be stopped: then it will be found silent
  const std::vector<int> stuck = roots();
  const double most = seconds(limits_.exchange).count(), longest = seconds(longest_).count();
  double limit = a_step_is_done_ ? std::max(least_seconds, times_longest * longest) : most;
  if (limits_.step.count() > 0) limit = seconds(limits_.step).count();
  const bool in_install = is_in_install(stuck);
  if (in_install) limit = most;
  if (!all_in_step(stuck)) limit = std::max(limit, most);  // saving or reading may take long
  const double passed = seconds(now - last_move_).count();
  if (passed < limit) return std::nullopt;
  std::string text = lost_between();
  if (text.empty()) {
    std::vector<int> named = stuck;
    for (const int rank : circle_from(stuck.front()))
      if (named.size() < most_in_circle && std::find(named.begin(), named.end(), rank) == named.end())
        named.push_back(rank);
    for (const int rank : named) add(text, hold_up_of(rank));
  }
  if (in_install)
    return verdict{stuck.front(), say("RC5373: the install has made no progress for {} s "
                                      "(RANKC_EXCHANGE_TIMEOUT): {}",
                                      whole_seconds(now - last_move_), text)};
  return verdict{stuck.front(), say("RC5354: no rank has made progress for {} s (RANKC_STEP_TIMEOUT): {}",
                                    whole_seconds(now - last_move_), text)};
}

}  // namespace rankc::runtime
