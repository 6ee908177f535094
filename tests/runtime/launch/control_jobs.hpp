// SPDX-License-Identifier: Apache-2.0
// Jobs with ranks as threads, each with its own connection to one coordinator.
#pragma once
#include <rankc/launch/coordinator.hpp>
#include <rankc/launch/frame.hpp>
#include <rankc/launch/listen.hpp>
#include <rankc/launch/member.hpp>

#include "../../said.hpp"
#include "../../slowness.hpp"
#include "../trainer/scratch.hpp"

#include <doctest/doctest.h>
#include <dirent.h>
#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace control_test {

using namespace rankc::runtime;
using namespace std::chrono_literals;
using clock_of_test = std::chrono::steady_clock;

using rankc::test::said;
using rankc::test::said_in;
using rankc::test::scaled;

inline std::chrono::milliseconds scaled_ms(double seconds) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(scaled(seconds));
}

inline const limits short_limits{
    .join = scaled_ms(1), .silence = scaled_ms(0.8), .end = scaled_ms(0.5), .exchange = scaled_ms(0.6)};

inline deadline in(double seconds) { return clock_of_test::now() + scaled_ms(seconds); }

inline hello rank_of(int rank, int world) {
  return {.rank = rank,
          .world = world,
          .host = "here",
          .pid = 1000 + rank,
          .plan = "p 01",
          .build = "b",
          .facts = {{"binary", "a"}}};
}

inline const mac_key key_of_test = key_of_job("a secret", "a job");

struct job {
  int world;
  mac_key key = key_of_test;
  limits times = short_limits;
  std::string host = "127.0.0.1";
  std::mutex mutex{};
  std::vector<std::string> lines{};  // notes of the coordinator
  coordinator middle{listen_at(host, 0, false, in(1)).sockets, world, key, times,
                     [this](const std::string& line) {
                       const std::lock_guard lock(mutex);
                       lines.push_back(line);
                     }};
  job(int w, limits l = short_limits, std::string at = "127.0.0.1")
      : world(w), times(l), host(std::move(at)) {}

  std::unique_ptr<member> join(int rank, member::settings also = {}) {
    return join(rank_of(rank, world), std::move(also));
  }
  std::unique_ptr<member> join(const hello& who, member::settings also = {}) {
    also.host = host;
    also.port = middle.port();
    if (also.job == mac_key{}) also.job = key;
    also.times = times;
    return std::make_unique<member>(who, std::move(also));
  }
  /// A connection that has proven the key. The test itself sends frames on it.
  coordinator_link link() { return join_coordinator(host, middle.port(), key, in(1)); }
};

inline void send(coordinator_link& link, frame_kind kind, std::string_view body = {}) {
  send_all(link.socket, link.to_coordinator.encode(kind, body), in(1));
}

/// Run one function per rank concurrently. Returns: each rank's exception.
template <class Act>
std::vector<std::string> together(int world, const Act& act) {
  std::vector<std::string> thrown(static_cast<std::size_t>(world));
  std::vector<std::thread> threads;
  for (int r = 0; r < world; ++r)
    threads.emplace_back([&, r] { thrown[static_cast<std::size_t>(r)] = refusal_of([&] { act(r); }); });
  for (std::thread& t : threads) t.join();
  return thrown;
}

inline double seconds_since(clock_of_test::time_point start) {
  return std::chrono::duration<double>(clock_of_test::now() - start).count();
}

inline int open_files() {
  int count = 0;
  DIR* folder = opendir("/proc/self/fd");
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count;
}

inline const std::string nothing = "nothing was thrown";

}  // namespace control_test
