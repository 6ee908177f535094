// SPDX-License-Identifier: Apache-2.0
#include <rankc/launch/member.hpp>

#include "connect.hpp"
#include "watch.hpp"

#include <rankc/runtime/failure.hpp>

#include <fmt/format.h>
#include <poll.h>

#include <exception>

namespace rankc::runtime {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

constexpr auto between_looks_at_coordinator = 100ms;
constexpr auto to_answer = 10s;      // limit for the coordinator, which judges within a shorter time
constexpr auto to_know_causes = 2s;  // how long to wait for the root cause after this rank's failure
constexpr auto for_all_to_end = 600s;
constexpr int for_the_launcher = 500;  // milliseconds for the launcher to report how rank 0 ended
constexpr std::size_t most_bytes_at_once = std::size_t{1} << 20;

/// The failure if the coordinator has given no verdict.
failure no_verdict(const std::string& coordinator, bool has_gone) {
  if (has_gone)
    return failure(75, "RC5361: {} ended the connection before it reported whether all ranks agree",
                   coordinator);
  return failure(75, "RC5326: {} did not report in time whether all ranks have joined and agree",
                 coordinator);
}

}  // namespace

failure stopped_by(const root_cause& c) { return failure(77, "RC5327: stopped, because {}", c.text); }

member::member(const hello& self, settings s)
    : self_(self),
      settings_(std::move(s)),
      coordinator_(fmt::format("rank 0 at {} port {}", settings_.host, settings_.port)),
      link_(join_coordinator(settings_.host, settings_.port, settings_.job,
                             clock::now() + settings_.times.join, settings_.waits)) {
  send(frame_kind::hello, pack(self_));
  thread_ = std::thread([this] { serve_or_learn(); });
  std::unique_lock lock(mutex_);
  const auto patience = settings_.times.join + to_answer;
  const bool has_news = changed_.wait_for(lock, patience, [this] { return verdict_ || cause_; });
  const auto verdict = verdict_;
  lock.unlock();
  if (verdict && verdict->code == 0) return;
  close();
  if (!verdict && has_stopped_serving_) throw failure::reported(cause_->code, cause_->text);
  if (!verdict) throw no_verdict(coordinator_, has_news);
  const failure refused = failure::reported(verdict->code, verdict->text);
  if (verdict->is_shared) throw refused_start(refused);
  throw refused;
}

member::~member() { close(); }

void member::close() {
  ending_ = true;
  stop_waiting(link_.socket);
  if (thread_.joinable()) thread_.join();
  const std::lock_guard lock(sending_);
  link_.socket = socket_handle();
}

void member::send(frame_kind kind, std::string_view body) {
  const std::lock_guard lock(sending_);
  if (link_.socket)
    send_all(link_.socket, link_.to_coordinator.encode(kind, body), clock::now() + settings_.times.silence);
}

// An exception of the thread, for example for lack of memory, is a failure of this rank.
void member::serve_or_learn() try { serve(); } catch (const std::exception& e) {
  has_stopped_serving_ = true;
  learn({self_.rank, 70,
         say("RC6321: rank {} can no longer receive messages from {}: {}", self_.rank, coordinator_,
             e.what())});
}

// The thread's loop: receive frames, and send a sign of life.
void member::serve() {
  deadline heard = clock::now(), alive_sent = heard, looked_at = heard;
  bool connected = receive();
  while (!ending_) {
    pollfd one{connected ? link_.socket.fd() : -1, POLLIN, 0};
    poll(&one, 1, static_cast<int>(between_looks_at_coordinator.count()));
    if (ending_) return;
    const deadline now = clock::now();
    if (now - looked_at > 2 * between_looks_at_coordinator)
      heard += now - looked_at;  // this process itself was stopped meanwhile
    looked_at = now;
    if (one.revents != 0) {
      heard = now;
      connected = receive();
      if (!connected) learn({0, 70, how_coordinator_ended()});
    } else if (connected && now > heard + settings_.times.silence) {
      connected = false;
      learn({0, 70,
             say("RC5329: {} gave no sign of life for {} s: it is stopped, or its machine is out of reach",
                 coordinator_, whole_seconds(now - heard))});
    }
    if (connected && now >= alive_sent + settings_.times.sign_of_life()) {
      alive_sent = now;
      send(frame_kind::alive, sign_of_life());
    }
    act_on_failure();
  }
}

// Receive all frames that have arrived. Returns: false if the connection has ended or is disturbed.
bool member::receive() try {
  frame_reader& reader = link_.from_coordinator;
  std::string bytes;
  const received what = receive_into(link_.socket, bytes, std::min(most_bytes_at_once, reader.room()));
  reader.add(bytes);
  while (const auto f = reader.next()) take(*f);
  return what != received::end;
} catch (const not_a_frame&) {
  return false;
}

std::string member::how_coordinator_ended() const {
  const std::string how = settings_.ends != nullptr ? wait_for_end(*settings_.ends, 0, for_the_launcher) : "";
  return how.empty() ? say("RC5328: {} closed the connection without an error report", coordinator_) : how;
}

// It contains this rank's position once there is an engine.
std::string member::sign_of_life() {
  const std::lock_guard telling(telling_);
  if (!on_look_) return body_writer().add(std::uint64_t{0}).take();
  rank_position s = on_look_();
  const std::lock_guard lock(mutex_);
  if (!exchange_.empty() && (!s.in_step || s.step == 0)) {  // an exchange during a step belongs to a save
    s.waits = true;
    s.awaited = exchange_;
  }
  return body_writer().add(std::uint64_t{1}).add(pack(s)).take();
}

void member::on_look(std::function<rank_position()> ask) {
  const std::lock_guard telling(telling_);
  on_look_ = std::move(ask);
}

void member::take(const frame& f) {
  body_reader body(f.body);
  if (f.kind == frame_kind::show)
    return send(frame_kind::shown, settings_.listing ? settings_.listing() : "");
  std::unique_lock lock(mutex_);
  if (f.kind == frame_kind::verdict) {
    start_verdict v;
    v.code = static_cast<int>(body.number());
    v.text = body.text();
    data_address_ = body.text();
    v.is_shared = body.number() != 0;
    verdict_ = std::move(v);
  } else if (f.kind == frame_kind::gathered) {
    std::vector<std::string>& parts = gathered_[body.text()];
    for (int rank = 0; rank < self_.world; ++rank) parts.push_back(body.text());
  } else if (f.kind == frame_kind::begun) {
    stop_is_proposed_ = true;  // no other step begins until the last step is known
    const std::int64_t step = begun_;
    lock.unlock();
    return send(frame_kind::begun, body_writer().add(static_cast<std::uint64_t>(step)).take());
  } else if (f.kind == frame_kind::stop) {
    const auto step = static_cast<std::int64_t>(body.number());
    stop_ = {step, static_cast<int>(body.number())};
  } else if (f.kind == frame_kind::bye) {
    is_over_ = true;
  } else if (f.kind == frame_kind::failed) {
    const int rank = static_cast<int>(body.number()), code = static_cast<int>(body.number());
    const std::string text = body.text();
    lock.unlock();
    return learn({rank, code, text});
  }
  changed_.notify_all();
}

// Keep the first cause. A connection that ends after all ranks have left is not a failure.
void member::learn(root_cause c) {
  {
    const std::lock_guard lock(mutex_);
    if (cause_ || is_over_) return;
    cause_ = std::move(c);
  }
  changed_.notify_all();
  const std::lock_guard lock(telling_);
  if (on_failure_ && (cause_->rank != self_.rank || !has_told_failure_))
    on_failure_(cause_->rank != self_.rank ? stopped_by(*cause_).what() : cause_->text);
}

// End this process if it does not return from a step although a rank has failed.
void member::act_on_failure() {
  std::unique_lock lock(mutex_);
  if (!cause_ || (cause_->rank == self_.rank && has_told_failure_) || !settings_.too_late) return;
  if (!too_late_at_) too_late_at_ = clock::now() + settings_.times.end;
  if (clock::now() < *too_late_at_) return;
  lock.unlock();
  settings_.too_late(*cause_);
}

void member::throw_if_failed() const {
  if (cause_) throw stopped_by(*cause_);
}

std::vector<std::string> member::gather(const std::string& name, const std::string& mine) {
  std::string key;
  {
    const std::lock_guard lock(mutex_);
    throw_if_failed();
    key = fmt::format("{} {}", name, ++times_gathered_[name]);
    exchange_ = fmt::format("the exchange \"{}\"", key);
  }
  send(frame_kind::gather, body_writer().add(key).add(mine).take());
  std::unique_lock lock(mutex_);
  const bool done = changed_.wait_for(lock, settings_.times.exchange + to_answer,
                                      [&] { return gathered_.contains(key) || cause_; });
  exchange_.clear();
  throw_if_failed();
  if (!done) throw failure(77, "RC5330: {} did not answer in the exchange \"{}\"", coordinator_, key);
  auto parts = gathered_.extract(key);
  return std::move(parts.mapped());
}

int member::agreed_stop(std::int64_t step, int signal) {
  std::unique_lock lock(mutex_);
  if (signal != 0 && !has_asked_to_stop_) {
    has_asked_to_stop_ = true;
    lock.unlock();
    send(frame_kind::ask_stop, body_writer().add(static_cast<std::uint64_t>(signal)).take());
    lock.lock();
  }
  const bool is_agreed = changed_.wait_for(lock, settings_.times.exchange,
                                           [this] { return !stop_is_proposed_ || stop_ || cause_; });
  throw_if_failed();
  if (!is_agreed)
    throw failure(77,
                  "RC5362: the ranks did not agree on their last step within {} s (RANKC_EXCHANGE_TIMEOUT)",
                  whole_seconds(settings_.times.exchange));
  if (stop_ && step >= stop_->first) return stop_->second;
  begun_ = step + 1;
  return 0;
}

std::unique_ptr<transport> member::connect() {
  const auto exchange = [this](const std::string& name, const std::string& mine) {
    return gather(name, mine);
  };
  return connect_all(exchange, {.rank = self_.rank,
                                .world = self_.world,
                                .address = data_address_,
                                .patience = settings_.times.exchange});
}

void member::on_failure(std::function<void(const std::string&)> act) {
  const std::lock_guard telling(telling_);
  on_failure_ = std::move(act);
  const std::lock_guard lock(mutex_);
  if (on_failure_ && cause_ && cause_->rank != self_.rank) on_failure_(stopped_by(*cause_).what());
}

void member::tell_failure(int code, const std::string& text) {
  {
    const std::lock_guard lock(mutex_);
    if (has_told_failure_) return;
    has_told_failure_ = true;
  }
  send(frame_kind::failed, body_writer().add(static_cast<std::uint64_t>(code)).add(text).take());
}

root_cause member::report(int code, const std::string& text) {
  tell_failure(code, text);
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, to_know_causes, [this] { return cause_.has_value(); });
  return cause_ ? *cause_ : root_cause{self_.rank, code, text};
}

void member::leave() {
  send(frame_kind::bye, "");
  std::unique_lock lock(mutex_);
  const bool told = changed_.wait_for(lock, for_all_to_end, [this] { return is_over_ || cause_; });
  if (is_over_) return;
  throw_if_failed();
  if (!told)
    throw failure(77, "RC5331: the other ranks did not end within {} s of this one",
                  whole_seconds(for_all_to_end));
}

}  // namespace rankc::runtime
