// SPDX-License-Identifier: Apache-2.0
#include "star.hpp"

#include <rankc/runtime/failure.hpp>

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <set>

namespace rankc::runtime {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

constexpr auto tick = 100ms;
constexpr auto to_say_hello = 5s;      // of a client, before it is turned away
constexpr auto for_other_faults = 2s;  // from the first on, so that all are told at once
constexpr auto to_show = 5s;           // a description
constexpr auto for_a_cause = 500ms;    // of a failure that has another's as its cause
constexpr auto for_the_others_to_go = 2s;
constexpr auto for_the_launcher = 500ms;  // to say how a rank has ended that has gone
constexpr auto for_more_causes = 100ms;   // independent of the first
constexpr std::size_t longest_body = std::size_t{256} << 20;

}  // namespace

coordinator::star::star(socket_handle listener, int world, std::uint64_t job, const limits& l,
                        std::function<void(const std::string&)> log, std::shared_ptr<board> ends)
    : listener_(std::move(listener)),
      woken_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      world_(world),
      job_(job),
      limits_(l),
      log_(std::move(log)),
      started_(clock::now()),
      judged_by_(started_ + l.join),
      looked_at_(started_),
      said_alive_(started_),
      ends_(std::move(ends)),
      watch_(l, [this](int rank) { return name_of(rank); }) {}

void coordinator::star::serve(const std::atomic<bool>& ending) {
  std::optional<deadline> until;
  std::vector<pollfd> polled;
  for (;;) {
    if (ending && !until) until = clock::now() + for_the_others_to_go;
    if (until && (connections_.empty() || clock::now() > *until)) return;
    polled.assign({{listener_.fd(), POLLIN, 0}, {until ? -1 : woken_.fd(), POLLIN, 0}});
    for (const connection& c : connections_)
      polled.push_back({c.socket.fd(), static_cast<short>(POLLIN | (c.out.empty() ? 0 : POLLOUT)), 0});
    const std::chrono::milliseconds patience = causes_.empty() ? tick : tick / 10;
    poll(polled.data(), polled.size(), static_cast<int>(patience.count()));
    std::size_t i = 2;
    for (connection& c : connections_)
      if (polled[i++].revents != 0) read(c);
    if (polled[0].revents != 0) accept_all();
    look_at_clock();
    for (connection& c : connections_) write(c);
    connections_.remove_if([](const connection& c) { return c.gone; });
  }
}

void coordinator::star::wake() { eventfd_write(woken_.fd(), 1); }

void coordinator::star::accept_all() {
  while (socket_handle s = accept_from(listener_)) {
    std::string address = remote_address(s);
    connections_.push_back(
        {.socket = std::move(s), .address = std::move(address), .last_heard = clock::now()});
  }
}

void coordinator::star::read(connection& c) {
  std::string bytes;
  const received what = receive_into(c.socket, bytes);
  c.reader.add(bytes);
  if (what == received::something) c.last_heard = clock::now();
  try {
    while (!c.gone && !c.closing)
      if (const auto f = c.reader.next()) take(c, *f);
      else break;
  } catch (const not_a_frame&) {
    if (c.who)
      lose(
          c,
          say("RC5342: {} sent bytes that are not a message (last position: {}); its connection is disturbed",
              c.who->who(), last_position(c)));
    else turn_away(c);
  }
  if (what != received::end || c.gone) return;
  if (!c.who && !c.closing) return turn_away(c);
  c.gone = true;
  if (c.who && !c.left && !c.closing)
    lose(c,
         say("RC5343: {} closed the connection without an error report (last position: {}): the process was "
             "killed or crashed, or its machine is down",
             c.who->who(), last_position(c)));
}

void coordinator::star::write(connection& c) {
  if (c.gone || c.out.empty()) return;
  const long sent = send_some(c.socket, c.out);
  if (sent > 0) c.out.erase(0, static_cast<std::size_t>(sent));
  if (c.closing && c.out.empty()) c.gone = true;
}

void coordinator::star::send(connection& c, frame_kind kind, std::string body) {
  c.out += encode({kind, job_, std::move(body)});
}

void coordinator::star::turn_away(connection& c) {
  c.gone = true;
  if (has_turned_away_) return;
  has_turned_away_ = true;
  log_(say(
      "RC5344: a client at {} is not a rank of this job and was turned away; more of them are not reported",
      c.address));
}

void coordinator::star::take(connection& c, const frame& f) {
  if (!c.who && f.kind != frame_kind::hello) return turn_away(c);
  body_reader body(f.body);
  switch (f.kind) {
    case frame_kind::hello:
      return take_hello(c, f);
    case frame_kind::shown:
      listings_[c.who->rank] = f.body;
      return;
    case frame_kind::gather:
      return take_part(c, f.body);
    case frame_kind::failed: {
      const int code = static_cast<int>(body.number());
      const std::string text = body.text();
      if (code != 77) return add_cause({c.who->rank, code, text, false});
      if (!suspicion_ && !has_failed_) suspicion_ = {c.who->rank, text, clock::now() + for_a_cause};
      return;
    }
    case frame_kind::ask_stop:
      if (stop_signal_ == 0) for_each_rank([&](connection& to) { send(to, frame_kind::begun); });
      if (stop_signal_ == 0) stop_signal_ = static_cast<int>(body.number());
      return;
    case frame_kind::begun:
      return take_begun(c, static_cast<std::int64_t>(body.number()));
    case frame_kind::bye:
      return leave(c);
    case frame_kind::alive:
      if (c.left) return;
      if (body.number() == 0) return watch_.expect(c.who->rank, clock::now());
      return watch_.hear(c.who->rank, unpack_standing(body.text()), clock::now());
    case frame_kind::stop:
    case frame_kind::show:
    case frame_kind::verdict:
    case frame_kind::gathered:
      return;
  }
}

void coordinator::star::take_hello(connection& c, const frame& f) {
  if (f.job != job_) {
    tell_verdict(c, 75,
                 say("RC5345: port {} belongs to another job, and two jobs cannot meet at one port; set "
                     "MASTER_PORT to a "
                     "free one for this job, or wait until the other has ended",
                     port_of(listener_)));
    c.closing = true;
    return;
  }
  hello h = unpack_hello(f.body);
  if (phase_ == phase::running || phase_ == phase::over) {
    tell_verdict(c, phase_ == phase::over ? 2 : 75,
                 phase_ == phase::over
                     ? verdict_
                     : say("RC5346: {} came after the job started with all its {} ranks", h.who(), world_));
    c.closing = true;
    return;
  }
  c.reader.allow(longest_body);
  names_[h.rank] = h.who();
  c.who = std::move(h);
}

// Once a second all are told that this rank lives, and those of whom nothing is heard are lost. Where this
// process itself was stopped, nobody is to blame for the time.
void coordinator::star::look_at_clock() {
  const deadline now = clock::now();
  const auto away = now - looked_at_ - 2 * tick;
  if (away > 0s) watch_.excuse(away);
  if (away > 0s)
    for (connection& c : connections_) c.last_heard = std::min<deadline>(now, c.last_heard + away);
  looked_at_ = now;
  for (connection& c : connections_)
    if (!c.who && !c.gone && !c.closing && now > c.last_heard + to_say_hello) turn_away(c);
  if (phase_ == phase::joining || phase_ == phase::showing) judge();
  if (now >= said_alive_ + limits_.sign_of_life()) {
    said_alive_ = now;
    for_each_rank([&](connection& c) { send(c, frame_kind::alive); });
  }
  if (phase_ != phase::running) return;
  for_each_rank([&](connection& c) {
    if (!c.left && now > c.last_heard + limits_.silence)
      lose(c, say("RC5347: {} gave no sign of life for {} s (last position: {}): it is stopped, or its "
                  "machine is "
                  "out of reach",
                  c.who->who(), whole_seconds(now - c.last_heard), last_position(c)));
  });
  look_at_exchanges(now);
  look_at_causes(now);
  if (!has_failed_ && causes_.empty())
    if (const auto stuck = watch_.judge(now)) fail(stuck->rank, 70, stuck->text);
  if (suspicion_ && now > suspicion_->until) fail(suspicion_->rank, 77, suspicion_->text);
}

// The verdict comes when as many have joined as there are ranks, or when the time is over. What is wrong with
// those who are there shortens that.
void coordinator::star::judge() {
  const deadline now = clock::now();
  std::vector<hello> joined;
  for_each_rank([&](connection& c) { joined.push_back(*c.who); });
  if (joined.empty() || (static_cast<int>(joined.size()) < world_ && now < judged_by_)) {
    std::set<int> ranks;
    for (const hello& h : joined) ranks.insert(h.rank);
    const bool wrong =
        ranks.size() < joined.size() ||
        std::any_of(
            joined.begin(), joined.end(),
            [&](const hello& h) { return h.world != world_ || h.rank < 0 || h.rank >= world_; });
    if (wrong) judged_by_ = std::min<deadline>(judged_by_, now + for_other_faults);
    return;
  }
  std::map<std::string, connection*> plans;
  for_each_rank([&](connection& c) { plans.try_emplace(c.who->plan, &c); });
  if (plans.size() > 1 && phase_ == phase::joining) {
    phase_ = phase::showing;
    judged_by_ = now + to_show;
    for_each_rank([&](connection& c) {
      if (c.who->rank != 0 && plans[c.who->plan] != &c) return;
      send(c, frame_kind::show);
      ++asked_;
    });
  }
  if (phase_ == phase::showing && now < judged_by_ && listings_.size() < asked_) return;
  give_verdict();
}

void coordinator::star::give_verdict() {
  std::vector<hello> joined;
  for_each_rank([&](connection& c) { joined.push_back(*c.who); });
  std::stable_sort(joined.begin(), joined.end(),
                   [](const hello& a, const hello& b) { return a.rank < b.rank; });
  const std::string faults = differences(joined, world_, listings_);
  phase_ = faults.empty() ? phase::running : phase::over;
  if (!faults.empty())
    verdict_ =
        say("RC5348: the ranks cannot start together ({} s after the first): {}",
            fmt::format("{:.1f}", std::chrono::duration<double>(clock::now() - started_).count()), faults);
  for_each_rank([&](connection& c) { watch_.expect(c.who->rank, clock::now()); });
  for_each_rank([&](connection& c) { tell_verdict(c, faults.empty() ? 0 : 2, verdict_); });
}

void coordinator::star::tell_verdict(connection& c, int code, const std::string& text) {
  send(c, frame_kind::verdict,
       body_writer()
           .add(static_cast<std::uint64_t>(code))
           .add(text)
           .add(code == 0 ? data_address_of(c) : "")
           .take());
}

// Where a rank's data connections listen: the address that it has come from. Ranks of this machine have come
// over the loopback; where others are elsewhere, those reach this machine at the address that they have
// connected to.
std::string coordinator::star::data_address_of(const connection& c) const {
  if (!is_loopback(c.address)) return c.address;
  for (const connection& other : connections_)
    if (other.who && !is_loopback(other.address)) return local_address(other.socket);
  return c.address;
}

void coordinator::star::take_part(const connection& c, const std::string& text) {
  body_reader body(text);
  const std::string name = body.text();
  exchange& e = exchanges_.try_emplace(name, exchange{clock::now(), {}}).first->second;
  e.from[c.who->rank] = body.text();
  if (static_cast<int>(e.from.size()) < world_) return;
  body_writer all;
  all.add(name);
  for (const auto& [rank, bytes] : e.from) all.add(bytes);
  const std::string whole = all.take();
  for_each_rank([&](connection& to) { send(to, frame_kind::gathered, whole); });
  exchanges_.erase(name);
}

void coordinator::star::look_at_exchanges(deadline now) {
  for (const auto& [name, e] : exchanges_) {
    if (has_failed_ || now < e.started + limits_.exchange) continue;
    std::vector<int> missing;
    for (int r = 0; r < world_; ++r)
      if (!e.from.contains(r)) missing.push_back(r);
    fail(missing.front(), 70,
         say("RC5349: these ranks did not come to the exchange \"{}\" within {} s, while the others wait: {}",
             name, whole_seconds(limits_.exchange), ranks_text(missing)));
  }
}

// The last step is the latest that any rank has begun: all others must take it too, and none can begin a
// later one.
void coordinator::star::take_begun(const connection& c, std::int64_t step) {
  begun_[c.who->rank] = step;
  if (static_cast<int>(begun_.size()) < world_) return;
  std::int64_t last = 0;
  for (const auto& [rank, at] : begun_) last = std::max(last, at);
  const std::string body = body_writer()
                               .add(static_cast<std::uint64_t>(last))
                               .add(static_cast<std::uint64_t>(stop_signal_))
                               .take();
  for_each_rank([&](connection& to) { send(to, frame_kind::stop, body); });
}

std::string coordinator::star::last_position(const connection& c) const {
  const std::string place = watch_.last_place(c.who->rank);
  return place.empty() ? "unknown" : place;
}

void coordinator::star::lose(connection& c, const std::string& text) {
  c.gone = true;
  if (phase_ == phase::running) add_cause({c.who->rank, 70, text, true});
}

std::string coordinator::star::name_of(int rank) const {
  const auto found = names_.find(rank);
  return found != names_.end() ? found->second : fmt::format("rank {}", rank);
}

// Where the launcher says how ranks have ended, what comes shortly after the first failure is told with it;
// elsewhere it could be the launcher's own doing.
void coordinator::star::add_cause(found_cause c) {
  if (has_failed_) return;
  if (ends_ == nullptr) return fail(c.rank, c.code, c.text);
  for (const found_cause& known : causes_)
    if (known.rank == c.rank || known.text == c.text) return;
  if (causes_.empty()) causes_since_ = clock::now();
  causes_.push_back(std::move(c));
}

void coordinator::star::look_at_causes(deadline now) {
  if (causes_.empty() || has_failed_) return;
  const bool all_known = std::all_of(causes_.begin(), causes_.end(), [&](const found_cause& c) {
    return !c.is_loss || ends_->has_ended(c.rank);
  });
  if (now < causes_since_ + (all_known ? for_more_causes : for_the_launcher)) return;
  const found_cause* first = nullptr;
  std::string text;
  for (found_cause& c : causes_) {
    if (c.is_loss && ends_->has_ended(c.rank)) c.text = ends_->end_of(c.rank);
    if (c.text.empty()) continue;  // it was another's victim
    if (first == nullptr) first = &c;
    text += (text.empty() ? "" : "; and ") + c.text;
  }
  if (first != nullptr) fail(first->rank, first->code, text);
  causes_.clear();
}

void coordinator::star::fail(int rank, int code, const std::string& text) {
  if (has_failed_) return;
  has_failed_ = true;
  const std::string body = body_writer()
                               .add(static_cast<std::uint64_t>(rank))
                               .add(static_cast<std::uint64_t>(code))
                               .add(text)
                               .take();
  for_each_rank([&](connection& c) { send(c, frame_kind::failed, body); });
}

void coordinator::star::leave(connection& c) {
  if (!c.left) ++left_;
  c.left = true;
  watch_.leave(c.who->rank);
  if (left_ == world_) for_each_rank([&](connection& each) { send(each, frame_kind::bye); });
}

}  // namespace rankc::runtime
