// SPDX-License-Identifier: Apache-2.0
#include "coordinator_server.hpp"

#include <rankc/runtime/failure.hpp>

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>

namespace rankc::runtime {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

constexpr auto between_looks_at_clock = 100ms;
constexpr auto to_say_hello = 5s;  // limit for a client, from its connection on
constexpr auto for_the_others_to_go = 2s;
constexpr std::size_t most_strangers = 16;
constexpr int most_accepted_at_once = 64;
constexpr int most_accepted_while_running = 16;  // at each look at the clock, once no rank is missing
constexpr std::size_t most_read_at_once = std::size_t{1} << 20;

}  // namespace

coordinator::server::server(std::vector<socket_handle> listeners, int world, const mac_key& job,
                            const limits& l, std::function<void(const std::string&)> log,
                            std::shared_ptr<board> ends)
    : listeners_(std::move(listeners)),
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

void coordinator::server::serve(const std::atomic<bool>& ending) {
  std::optional<deadline> until;
  for (;;) {
    if (ending && !until) until = clock::now() + for_the_others_to_go;
    if (until && (connections_.empty() || clock::now() > *until)) return;
    wait_for_events(!until);
    look_at_clock();
    for (connection& c : connections_) write(c);
    connections_.remove_if([](const connection& c) { return c.gone; });
  }
}

void coordinator::server::close() {
  connections_.clear();
  listeners_.clear();
}

void coordinator::server::wake() { eventfd_write(woken_.fd(), 1); }

void coordinator::server::wait_for_events(bool may_be_woken) {
  const bool accepts = clock::now() >= accepts_from_;
  std::vector<pollfd> polled{{may_be_woken ? woken_.fd() : -1, POLLIN, 0}};
  for (const socket_handle& listener : listeners_)
    polled.push_back({accepts ? listener.fd() : -1, POLLIN, 0});
  for (const connection& c : connections_)
    polled.push_back({c.socket.fd(), static_cast<short>(POLLIN | (c.out.empty() ? 0 : POLLOUT)), 0});
  const std::chrono::milliseconds patience =
      causes_.empty() ? between_looks_at_clock : between_looks_at_clock / 10;
  poll(polled.data(), polled.size(), static_cast<int>(patience.count()));
  std::size_t i = 1 + listeners_.size();
  for (connection& c : connections_)
    if (polled[i++].revents != 0) read(c);
  if (accepts) accept_all();
}

// A rank's first message usually arrives with its connection, so a rank is not a stranger for long.
void coordinator::server::accept_all() {
  const bool running = phase_ == phase::running;
  const int most = running ? most_accepted_while_running : most_accepted_at_once;
  if (running) accepts_from_ = clock::now() + between_looks_at_clock;
  for (const socket_handle& listener : listeners_)
    for (int accepted = 0; accepted < most; ++accepted) {
      socket_handle s = accept_from(listener);
      if (!s && errno != EAGAIN && errno != EWOULDBLOCK)  // e.g. no free descriptor
        accepts_from_ = clock::now() + between_looks_at_clock;
      if (!s) break;
      const deadline now = clock::now();
      std::string address = remote_address(s);
      connections_.push_back({.socket = std::move(s),
                              .address = std::move(address),
                              .since = now,
                              .last_heard = now,
                              .reader = frame_reader(opening_key(job_)),
                              .writer = frame_writer(opening_key(job_))});
      read(connections_.back());
      close_oldest(most_strangers, [](const connection& c) { return c.is_stranger; });
    }
  close_oldest(most_strangers + static_cast<std::size_t>(world_),
               [](const connection& c) { return !c.is_stranger && !c.who; });
}

template <class Is>
void coordinator::server::close_oldest(std::size_t most, const Is& is) {
  const auto counts = [&](const connection& c) { return !c.gone && is(c); };
  auto there = static_cast<std::size_t>(std::count_if(connections_.begin(), connections_.end(), counts));
  for (auto c = connections_.begin(); there > most; ++c) {
    if (!counts(*c)) continue;
    turn_away(*c);
    --there;
  }
}

void coordinator::server::read(connection& c) {
  std::string bytes;
  const received what = receive_into(c.socket, bytes, std::min(most_read_at_once, c.reader.room()));
  c.reader.add(bytes);
  if (what == received::something) c.last_heard = clock::now();
  try {
    while (!c.gone && !c.closing)
      if (const auto f = c.reader.next()) take(c, *f);
      else break;
  } catch (const not_a_frame&) {
    if (!c.who) turn_away(c);
    else
      lose(c, say("RC5342: {} sent bytes that are not a message of this connection (last position: {}); the "
                  "connection is disturbed",
                  c.who->who(), last_position(c)));
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

void coordinator::server::write(connection& c) {
  if (c.gone || c.out.empty()) return;
  const long sent = send_some(c.socket, c.out);
  if (sent > 0) c.out.erase(0, static_cast<std::size_t>(sent));
  if (c.closing && c.out.empty()) c.gone = true;
}

void coordinator::server::send(connection& c, frame_kind kind, std::string_view body) {
  c.out += c.writer.encode(kind, body);
}

// A stranger receives no answer.
void coordinator::server::turn_away(connection& c) {
  c.gone = true;
  if (has_turned_away_) return;
  has_turned_away_ = true;
  log_(
      say("RC5344: a client at {} did not show that it is a rank of this job, and its connection was closed; "
          "the coordinator does not report further ones",
          c.address));
}

void coordinator::server::take(connection& c, const frame& f) {
  if (c.who) return take_from_rank(c, f);
  if (c.is_stranger && f.kind == frame_kind::open) return open(c, f);
  if (!c.is_stranger && f.kind == frame_kind::hello) return take_hello(c, f);
  turn_away(c);
}

// A replayed first message of a rank is turned away.
void coordinator::server::open(connection& c, const frame& f) {
  if (f.body.size() != nonce_bytes || !nonces_.insert(f.body).second) return turn_away(c);
  const std::string mine = random_nonce();
  c.writer = frame_writer(answer_key(job_, f.body));
  send(c, frame_kind::open, mine);
  const connection_keys keys = keys_of_connection(job_, f.body, mine);
  c.reader.use(keys.to_coordinator);
  c.writer = frame_writer(keys.to_rank);
  c.is_stranger = false;
}

// A message that is not due is an error, so that no exchange begins that the others never complete.
void coordinator::server::take_from_rank(connection& c, const frame& f) {
  body_reader body(f.body);
  const bool running = phase_ == phase::running;
  if (phase_ == phase::over) return;
  if (f.kind == frame_kind::alive) {
    if (c.left) return;
    if (body.number() == 0) return watch_.expect(c.who->rank, clock::now());
    return watch_.hear(c.who->rank, unpack_position(body.text()), clock::now());
  }
  if (f.kind == frame_kind::shown) {
    listings_[c.who->rank] = f.body;
    return;
  }
  if (running && f.kind == frame_kind::gather) return take_part(c, f.body);
  if (running && f.kind == frame_kind::failed) return take_failure(c, body);
  if (running && f.kind == frame_kind::ask_stop) return take_stop_signal(body.number());
  if (running && f.kind == frame_kind::begun) return take_begun(c, body.number());
  if (running && f.kind == frame_kind::bye) return leave(c);
  throw not_a_frame("a message that is not due");
}

// Every second, all ranks receive a sign of life, and a silent rank counts as lost. The time in which this
// process itself was stopped does not count.
void coordinator::server::look_at_clock() {
  const deadline now = clock::now();
  const auto away = now - looked_at_ - 2 * between_looks_at_clock;
  looked_at_ = now;
  if (away > 0s) {
    watch_.excuse(away);
    for (connection& c : connections_) {
      c.since = std::min<deadline>(now, c.since + away);
      c.last_heard = std::min<deadline>(now, c.last_heard + away);
    }
  }
  for (connection& c : connections_)
    if (!c.who && !c.gone && now > c.since + to_say_hello) turn_away(c);
  if (phase_ == phase::joining || phase_ == phase::showing) judge();
  if (now >= said_alive_ + limits_.sign_of_life()) {
    said_alive_ = now;
    for_each_rank([&](connection& c) { send(c, frame_kind::alive); });
  }
  if (phase_ == phase::running) look_at_ranks(now);
}

}  // namespace rankc::runtime
