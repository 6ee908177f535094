// SPDX-License-Identifier: Apache-2.0
// Eight processes that flood the port of a job, and measurements of the job: the memory of a process, the
// times of steps.
#pragma once
#include "program_runs.hpp"

#include <rankc/launch/frame.hpp>
#include <rankc/launch/socket.hpp>

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <atomic>
#include <new>

namespace rankc::test {

/// Eight processes that live as long as the object. While `attack` is on, each disturbs a port in a different
/// way.
class strangers {
 public:
  explicit strangers(int port) : shared_(make_shared()) {
    const std::vector<std::string> junk = make_junk();
    for (std::size_t way = 0; way < junk.size(); ++way) {
      processes_.push_back(fork());
      REQUIRE(processes_.back() >= 0);
      if (processes_.back() == 0) disturb(port, junk[way], way % 2 == 0);
    }
  }
  ~strangers() {
    for (const pid_t p : processes_) kill(p, SIGKILL);
    for (const pid_t p : processes_) waitpid(p, nullptr, 0);
    munmap(shared_, sizeof *shared_);
  }
  strangers(const strangers&) = delete;
  strangers& operator=(const strangers&) = delete;

  void attack(bool yes) { shared_->attacks = yes; }
  long connections() const { return shared_->connections; }

 private:
  struct shared {
    std::atomic<bool> attacks = false;
    std::atomic<long> connections = 0;
  };

  static shared* make_shared() {
    void* memory = mmap(nullptr, sizeof(shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(memory != MAP_FAILED);
    return new (memory) shared;
  }

  [[noreturn]] void disturb(int port, const std::string& junk, bool closes) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setpriority(PRIO_PROCESS, 0, 19);
    for (;;)
      if (shared_->attacks) flood(port, junk, closes);
      else std::this_thread::sleep_for(5ms);
  }

  /// Open up to 32 connections and send the junk through each. Half of the processes close each connection at
  /// once, and the others hold all of them for a moment.
  void flood(int port, const std::string& junk, bool closes) try {
    using namespace rankc::runtime;
    const auto until = clock_of_test::now() + 200ms;
    std::vector<socket_handle> held;
    for (int i = 0; i < 32 && shared_->attacks && clock_of_test::now() < until; ++i) {
      held.push_back(connect_to("127.0.0.1", port, until));
      ++shared_->connections;
      send_all(held.back(), junk, until);
      if (closes) held.clear();
    }
    std::this_thread::sleep_for(2ms);
  } catch (const rankc::runtime::failure&) {  // the port's queue is full
  }

  /// The bytes that each process sends; two processes send none.
  static std::vector<std::string> make_junk() {
    using namespace rankc::runtime;
    const mac_key unknown = key_of_job("a guess", "a job");
    const auto encoded = [&](frame_kind kind, const std::string& body) {
      return frame_writer(unknown).encode(kind, body);
    };
    return {"",
            "",
            "GET / HTTP/1.1\r\n\r\n",
            encoded(frame_kind::open, random_nonce()),
            std::string(1 << 20, '\0'),
            encoded(frame_kind::open, std::string(1 << 20, 'x')),
            encoded(frame_kind::hello, std::string(1000, 'x')),
            encoded(frame_kind::hello, "").substr(0, 20)};
  }

  shared* const shared_;
  std::vector<pid_t> processes_;
};

/// The largest resident size of a process since its start; 0 after its end.
/// Units: kilobytes.
inline long peak_memory(pid_t process) {
  std::istringstream in(contents("/proc/" + std::to_string(process) + "/status"));
  for (std::string word; in >> word;)
    if (word == "VmHWM:") {
      long kilobytes = 0;
      in >> kilobytes;
      return kilobytes;
    }
  return 0;
}

/// Units: milliseconds.
inline std::vector<double> step_times(const std::string& metrics) {
  std::vector<double> all;
  std::istringstream in(contents(metrics));
  const std::string name = "\"step_ms\":";
  for (std::string line; std::getline(in, line);)
    if (const auto at = line.find(name); at != line.npos)
      all.push_back(std::atof(line.c_str() + at + name.size()));
  return all;
}

inline constexpr long most_more_kilobytes = 16 * 1024;  // additional memory of rank 0 under attack

}  // namespace rankc::test
