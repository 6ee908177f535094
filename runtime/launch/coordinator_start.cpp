// SPDX-License-Identifier: Apache-2.0
// How the coordinator starts a job: it compares the ranks that join, and sends one verdict to all of them.
#include "coordinator_server.hpp"

#include <rankc/launch/listen.hpp>
#include <rankc/runtime/failure.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace rankc::runtime {
namespace {

using namespace std::chrono_literals;

constexpr auto for_other_faults = 2s;  // after the first fault, so that one verdict has all of them
constexpr auto to_show = 5s;           // limit for a rank to send its description

}  // namespace

void coordinator::server::take_hello(connection& c, const frame& f) {
  hello h = unpack_hello(f.body);
  if (phase_ == phase::over) tell_verdict(c, verdict_code_, verdict_, true);
  if (phase_ == phase::running)
    tell_verdict(c, 75,
                 say("RC5346: {} connected after the job had started with all its {} ranks", h.who(), world_),
                 false);
  c.closing = phase_ == phase::over || phase_ == phase::running;
  if (c.closing) return;
  c.reader.allow(longest_body);
  names_[h.rank] = h.who();
  c.who = std::move(h);
}

// The verdict is given when all ranks have joined, or when the time is over. Ranks that cannot belong to one
// job shorten that time.
void coordinator::server::judge() {
  const deadline now = std::chrono::steady_clock::now();
  std::vector<hello> joined;
  for_each_rank([&](connection& c) { joined.push_back(*c.who); });
  if (!is_decided(joined, now)) return;
  ask_for_listings(now);
  if (phase_ == phase::showing && now < judged_by_ && listings_.size() < asked_) return;
  give_verdict(std::move(joined));
}

bool coordinator::server::is_decided(const std::vector<hello>& joined, deadline now) {
  if (!joined.empty() && (static_cast<int>(joined.size()) >= world_ || now >= judged_by_)) return true;
  std::set<int> ranks;
  for (const hello& h : joined) ranks.insert(h.rank);
  const bool is_wrong =
      ranks.size() < joined.size() ||
      std::any_of(
          joined.begin(), joined.end(),
          [&](const hello& h) { return h.world != world_ || h.rank < 0 || h.rank >= world_; });
  if (is_wrong) judged_by_ = std::min<deadline>(judged_by_, now + for_other_faults);
  if (now > started_ + limits::before_a_note) say_who_is_missing(joined);
  return false;
}

void coordinator::server::say_who_is_missing(const std::vector<hello>& joined) {
  if (has_said_who_is_missing_) return;
  has_said_who_is_missing_ = true;
  const std::vector<int> missing = missing_ranks(joined, world_);
  log_(
      say("RC5363: rank 0 waits at port {} for {} {} of {} ranks; it waits for {} s in all "
          "(RANKC_JOIN_TIMEOUT)",
          port_of(listeners_.front()), missing.size() == 1 ? "rank" : "ranks", ranks_text(missing), world_,
          whole_seconds(limits_.join)));
}

// Rank 0 and one rank of each other plan send their descriptions, so that the verdict can name a difference.
void coordinator::server::ask_for_listings(deadline now) {
  std::map<std::string, connection*> plans;
  for_each_rank([&](connection& c) { plans.try_emplace(c.who->plan, &c); });
  if (plans.size() < 2 || phase_ != phase::joining) return;
  phase_ = phase::showing;
  judged_by_ = now + to_show;
  for_each_rank([&](connection& c) {
    if (c.who->rank != 0 && plans[c.who->plan] != &c) return;
    send(c, frame_kind::show);
    ++asked_;
  });
}

void coordinator::server::give_verdict(std::vector<hello> joined) {
  std::stable_sort(joined.begin(), joined.end(),
                   [](const hello& a, const hello& b) { return a.rank < b.rank; });
  const start_fault found = differences(joined, world_, listings_);
  phase_ = found.text.empty() ? phase::running : phase::over;
  verdict_code_ = found.code;
  const deadline now = std::chrono::steady_clock::now();
  if (!found.text.empty())
    verdict_ = say("RC5348: the ranks cannot start together ({} s after the first): {}",
                   fmt::format("{:.1f}", std::chrono::duration<double>(now - started_).count()), found.text);
  else if (const std::string note = builds_note(joined); !note.empty()) log_(note);
  for_each_rank([&](connection& c) { watch_.expect(c.who->rank, now); });
  for_each_rank([&](connection& c) { tell_verdict(c, verdict_code_, verdict_, true); });
}

void coordinator::server::tell_verdict(connection& c, int code, const std::string& text, bool is_shared) {
  send(c, frame_kind::verdict,
       body_writer()
           .add(static_cast<std::uint64_t>(code))
           .add(text)
           .add(code == 0 ? data_address_of(c) : "")
           .add(std::uint64_t{is_shared})
           .take());
}

// A rank's data connections listen at the address from which it joined. Ranks on this machine may have joined
// over the loopback interface; if there are ranks elsewhere, they get the address by which those reach this
// machine.
std::string coordinator::server::data_address_of(const connection& c) const {
  if (!is_loopback(c.address)) return c.address;
  for (const connection& other : connections_)
    if (other.who && !is_loopback(other.address)) return local_address(other.socket);
  return c.address;
}

}  // namespace rankc::runtime
