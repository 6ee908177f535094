// SPDX-License-Identifier: Apache-2.0
// How the coordinator follows a running job: exchanges, the agreement on the last step, and the first
// failure, which it reports to all ranks.
#include "coordinator_server.hpp"

#include <rankc/runtime/failure.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <limits>

namespace rankc::runtime {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

constexpr auto for_a_cause = 500ms;  // how long to wait for the cause of a failure that is a consequence
constexpr auto for_launchers_report = 500ms;  // how long the launcher has to report the end of a process
constexpr auto for_more_causes = 100ms;       // how long to wait for causes that are independent of the first

}  // namespace

void coordinator::server::take_part(const connection& c, const std::string& text) {
  body_reader body(text);
  const std::string name = body.text();
  exchange& e = exchanges_.try_emplace(name, exchange{clock::now(), {}}).first->second;
  if (!e.from.try_emplace(c.who->rank, body.text()).second) throw not_a_frame("a second part of one rank");
  if (static_cast<int>(e.from.size()) < world_) return;
  body_writer all;
  all.add(name);
  for (const auto& [rank, bytes] : e.from) all.add(bytes);
  const std::string whole = all.take();
  for_each_rank([&](connection& to) { send(to, frame_kind::gathered, whole); });
  exchanges_.erase(name);
}

void coordinator::server::take_failure(const connection& c, body_reader& body) {
  const int code = static_cast<int>(body.number());
  const std::string text = body.text();
  if (code != 77) return add_cause({c.who->rank, code, text, false});
  if (!suspicion_ && !has_failed_) suspicion_ = {c.who->rank, text, clock::now() + for_a_cause};
}

void coordinator::server::take_stop_signal(std::uint64_t signal) {
  if (signal == 0 || signal >= NSIG) throw not_a_frame("a number that is not a signal");
  if (stop_signal_ != 0) return;
  stop_signal_ = static_cast<int>(signal);
  for_each_rank([&](connection& to) { send(to, frame_kind::begun); });
}

// The last step is the latest one that any rank has begun: all other ranks must run it, too, and none may
// begin a later one.
void coordinator::server::take_begun(const connection& c, std::uint64_t step) {
  const bool is_due = stop_signal_ != 0 && step <= std::numeric_limits<std::int64_t>::max();
  if (!is_due || !begun_.try_emplace(c.who->rank, static_cast<std::int64_t>(step)).second)
    throw not_a_frame("a step that nobody asked for");
  if (static_cast<int>(begun_.size()) < world_) return;
  std::int64_t last = 0;
  for (const auto& [rank, at] : begun_) last = std::max(last, at);
  const std::string body = body_writer()
                               .add(static_cast<std::uint64_t>(last))
                               .add(static_cast<std::uint64_t>(stop_signal_))
                               .take();
  for_each_rank([&](connection& to) { send(to, frame_kind::stop, body); });
}

void coordinator::server::look_at_ranks(deadline now) {
  for_each_rank([&](connection& c) {
    if (!c.left && now > c.last_heard + limits_.silence)
      lose(c, say("RC5347: {} gave no sign of life for {} s (last position: {}): it is stopped, or its "
                  "machine is out of reach",
                  c.who->who(), whole_seconds(now - c.last_heard), last_position(c)));
  });
  look_at_exchanges(now);
  look_at_causes(now);
  if (!has_failed_ && causes_.empty())
    if (const auto stuck = watch_.judge(now)) fail(stuck->rank, 70, stuck->text);
  if (suspicion_ && now > suspicion_->until) fail(suspicion_->rank, 77, suspicion_->text);
}

void coordinator::server::look_at_exchanges(deadline now) {
  for (const auto& [name, e] : exchanges_) {
    if (has_failed_ || now < e.started + limits_.exchange) continue;
    std::vector<int> missing;
    for (int r = 0; r < world_; ++r)
      if (!e.from.contains(r)) missing.push_back(r);
    fail(missing.front(), 70,
         say("RC5349: these ranks did not reach the exchange \"{}\" within {} s, while the others wait: {}. "
             "Rank {} is {}",
             name, whole_seconds(limits_.exchange), ranks_text(missing), missing.front(),
             watch_.work_of(missing.front())));
  }
}

std::string coordinator::server::last_position(const connection& c) const {
  const std::string place = watch_.last_place(c.who->rank);
  return place.empty() ? "unknown" : place;
}

void coordinator::server::lose(connection& c, const std::string& text) {
  c.gone = true;
  if (phase_ == phase::running) add_cause({c.who->rank, 70, text, true});
}

std::string coordinator::server::name_of(int rank) const {
  const auto found = names_.find(rank);
  return found != names_.end() ? found->second : fmt::format("rank {}", rank);
}

// A launcher with shared memory reports how processes have ended. Failures that closely follow the first one
// are then reported together with it; otherwise they could be the launcher's doing.
void coordinator::server::add_cause(found_cause c) {
  if (has_failed_) return;
  if (ends_ == nullptr) return fail(c.rank, c.code, c.text);
  for (const found_cause& known : causes_)
    if (known.rank == c.rank || known.text == c.text) return;
  if (causes_.empty()) causes_since_ = clock::now();
  causes_.push_back(std::move(c));
}

void coordinator::server::look_at_causes(deadline now) {
  if (causes_.empty() || has_failed_) return;
  const bool all_known = std::all_of(causes_.begin(), causes_.end(), [&](const found_cause& c) {
    return !c.is_loss || ends_->has_ended(c.rank);
  });
  if (now < causes_since_ + (all_known ? for_more_causes : for_launchers_report)) return;
  const found_cause* first = nullptr;
  std::string text;
  for (found_cause& c : causes_) {
    if (c.is_loss && ends_->has_ended(c.rank)) c.text = ends_->end_of(c.rank);
    if (c.text.empty()) continue;  // it was another rank's victim
    if (first == nullptr) first = &c;
    text += (text.empty() ? "" : "; and ") + c.text;
  }
  if (first != nullptr) fail(first->rank, first->code, text);
  causes_.clear();
}

void coordinator::server::fail(int rank, int code, const std::string& text) {
  if (has_failed_) return;
  has_failed_ = true;
  const std::string body = body_writer()
                               .add(static_cast<std::uint64_t>(rank))
                               .add(static_cast<std::uint64_t>(code))
                               .add(text)
                               .take();
  for_each_rank([&](connection& c) { send(c, frame_kind::failed, body); });
}

void coordinator::server::leave(connection& c) {
  if (!c.left) ++left_;
  c.left = true;
  watch_.leave(c.who->rank);
  if (left_ == world_) for_each_rank([&](connection& each) { send(each, frame_kind::bye); });
}

}  // namespace rankc::runtime
