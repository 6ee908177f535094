// SPDX-License-Identifier: Apache-2.0
#include <rankc/launch/stop_signals.hpp>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <ctime>

namespace rankc::runtime {
namespace {

struct named_signal {
  int number;
  const char* name;
};
constexpr named_signal asking[] = {
    {SIGINT, "SIGINT"}, {SIGTERM, "SIGTERM"}, {SIGHUP, "SIGHUP"}, {SIGUSR1, "SIGUSR1"}, {SIGXCPU, "SIGXCPU"}};

constexpr std::int64_t one_second = 1'000'000'000;  // in nanoseconds

// A handler can use global state alone, and may run on several threads at once.
std::atomic<int> first_signal = 0, last_signal = 0, times_counted = 0;
std::atomic<std::int64_t> counted_at = 0;
std::atomic<on_stop> acts_on_stop = nullptr;
static_assert(std::atomic<std::int64_t>::is_always_lock_free && std::atomic<on_stop>::is_always_lock_free);

std::int64_t monotonic_now() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * one_second + t.tv_nsec;
}

void count_signal(int signal) {
  const int before = errno;
  const std::int64_t moment = monotonic_now();
  std::int64_t previous = counted_at;
  const bool repeats = times_counted > 0 && (signal == SIGXCPU || moment - previous < one_second);
  if (!repeats && counted_at.compare_exchange_strong(previous, moment)) {
    last_signal = signal;
    if (times_counted == 0) first_signal = signal;
    const int counted = ++times_counted;
    if (const on_stop act = acts_on_stop) act(signal, counted);
  }
  errno = before;
}

bool is_ignored(int signal) {
  struct sigaction now_there{};
  return sigaction(signal, nullptr, &now_there) == 0 && now_there.sa_handler == SIG_IGN;
}

}  // namespace

void take_stop_signals(on_stop act) {
  first_signal = last_signal = times_counted = 0;
  acts_on_stop = act;
  struct sigaction action{};
  action.sa_handler = count_signal;
  action.sa_flags = SA_RESTART;  // writes in progress continue
  for (const named_signal& each : asking) sigaddset(&action.sa_mask, each.number);
  for (const named_signal& each : asking)
    if (each.number != SIGHUP || !is_ignored(SIGHUP)) sigaction(each.number, &action, nullptr);
}

void release_stop_signals() {
  for (const named_signal& each : asking)
    if (!is_ignored(each.number)) std::signal(each.number, SIG_DFL);
}

stops stops_so_far() { return {first_signal, last_signal, times_counted}; }

void end_by(int signal) {
  std::signal(signal, SIG_DFL);
  std::raise(signal);  // inside a handler of the same signal, it takes effect when the handler returns
}

const char* stop_signal_name(int signal) {
  for (const named_signal& each : asking)
    if (each.number == signal) return each.name;
  return "a signal";
}

}  // namespace rankc::runtime
