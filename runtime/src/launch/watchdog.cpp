// SPDX-License-Identifier: Apache-2.0
#include <rankc/runtime/launch/watchdog.hpp>

#include "watch.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>

namespace rankc::runtime {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

constexpr auto tick = 250ms;

void look_on(engine& e, const limits& times, const std::function<void(const std::string&)>& end, const std::stop_token& stop) {
  const auto name = [](int rank) { return "rank " + std::to_string(rank); };
  limits unmeasured = times;  // until a step has shown how long steps take here
  if (unmeasured.step.count() == 0) unmeasured.step = times.exchange;
  watch at_first(unmeasured, name), later(times, name);
  std::mutex mutex;
  std::condition_variable_any ending;
  for (deadline looked_at = clock::now();;) {
    std::unique_lock lock(mutex);
    if (ending.wait_for(lock, stop, tick, [&] { return stop.stop_requested(); })) return;
    const deadline now = clock::now();
    if (now - looked_at > 4 * tick)  // this process itself was stopped
      for (watch* each : {&at_first, &later}) each->excuse(now - looked_at);
    looked_at = now;
    auto all = e.look();
    const bool any = std::any_of(all.begin(), all.end(), [](const auto& each) { return each.second.in_step; });
    bool is_measured = false;
    for (auto& [rank, does] : all) {
      does.waits = does.waits || (any && !does.in_step);  // it has done its part
      is_measured = is_measured || does.slowest_step > 0;
      at_first.hear(rank, does, now);
      later.hear(rank, std::move(does), now);
    }
    if (const auto stuck = (is_measured ? later : at_first).judge(now)) return end(stuck->text);
  }
}

}  // namespace

watchdog::watchdog(engine& e, const limits& times, std::function<void(const std::string&)> end)
    : thread_([&e, times, end = std::move(end)](const std::stop_token& stop) { look_on(e, times, end, stop); }) {}

}  // namespace rankc::runtime
