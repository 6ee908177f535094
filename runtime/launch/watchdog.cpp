// SPDX-License-Identifier: Apache-2.0
#include <rankc/launch/watchdog.hpp>

#include "watch.hpp"
#include <rankc/runtime/failure.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>

namespace rankc::runtime {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

constexpr auto watch_tick = 250ms;

void look_on(engine& e, const limits& times, const std::function<void(const std::string&)>& end,
             const std::stop_token& stop) {
  const auto name = [](int rank) { return "rank " + std::to_string(rank); };
  watch looking(times, name);
  std::mutex mutex;
  std::condition_variable_any ending;
  for (deadline looked_at = clock::now();;) {
    std::unique_lock lock(mutex);
    if (ending.wait_for(lock, stop, watch_tick, [&] { return stop.stop_requested(); })) return;
    const deadline now = clock::now();
    if (now - looked_at > 4 * watch_tick)  // this process itself was stopped
      looking.excuse(now - looked_at);
    looked_at = now;
    auto all = e.look();
    const bool any =
        std::any_of(all.begin(), all.end(), [](const auto& each) { return each.second.in_step; });
    for (auto& [rank, does] : all) {
      does.waits = does.waits || (any && !does.in_step);  // it has done its part of the step
      looking.hear(rank, std::move(does), now);
    }
    if (const auto stuck = looking.judge(now)) return end(stuck->text);
  }
}

}  // namespace

watchdog::watchdog(engine& e, const limits& times, std::function<void(const std::string&)> end)
    : thread_([&e, times, end = std::move(end)](const std::stop_token& stop) {
        try {
          look_on(e, times, end, stop);
        } catch (const std::exception& failed) {
          end(say("RC6322: the ranks can no longer be watched: {}", failed.what()));
        }
      }) {}

}  // namespace rankc::runtime
