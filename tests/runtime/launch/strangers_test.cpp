// SPDX-License-Identifier: Apache-2.0
// A job under attack by eight strangers: it starts, keeps its memory and the time of its steps, and ends with
// the losses of a job that is left alone.
#include "program_runs.hpp"

#include <rankc/launch/frame.hpp>
#include <rankc/launch/socket.hpp>

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <algorithm>
#include <atomic>
#include <fstream>

namespace {

using namespace rankc::test;
using namespace rankc::runtime;

constexpr long most_more_kilobytes = 16 * 1024;
constexpr double most_longer = 2;  // a step under attack, to one that is not

/// Eight threads. Each disturbs a port in another way while `attack` says so.
class strangers {
 public:
  explicit strangers(int port) : port_(port) {
    for (int way = 0; way < static_cast<int>(junk_.size()); ++way)
      threads_.emplace_back([this, way] {
        setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), 19);
        while (!over_)
          if (attacks_) disturb(way);
          else std::this_thread::sleep_for(5ms);
      });
  }
  ~strangers() {
    over_ = true;
    for (std::thread& t : threads_) t.join();
  }
  void attack(bool yes) { attacks_ = yes; }
  long connections() const { return connections_; }

 private:
  void disturb(int way) try {
    const auto until = clock_of_test::now() + 200ms;
    std::vector<socket_handle> held;
    for (int i = 0; i < 32 && attacks_ && clock_of_test::now() < until; ++i) {
      held.push_back(connect_to("127.0.0.1", port_, until));
      ++connections_;
      send_all(held.back(), junk_[static_cast<std::size_t>(way)], until);
      if (way % 2 == 0) held.clear();
    }
    std::this_thread::sleep_for(2ms);
  } catch (const failure&) {  // the queue of the port is full
  }

  /// The bytes that each way sends; two ways say nothing.
  static std::vector<std::string> make_junk() {
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

  const std::vector<std::string> junk_ = make_junk();
  const int port_;
  std::atomic<bool> attacks_ = false, over_ = false;
  std::atomic<long> connections_ = 0;
  std::vector<std::thread> threads_;
};

/// The most memory that a process has had since its start.
/// Units: kilobytes.
long peak_memory(pid_t process) {
  std::istringstream in(contents("/proc/" + std::to_string(process) + "/status"));
  for (std::string word; in >> word;)
    if (word == "VmHWM:") {
      long kilobytes = 0;
      in >> kilobytes;
      return kilobytes;
    }
  return 0;
}

std::vector<double> step_times(const std::string& metrics) {
  std::vector<double> all;
  std::istringstream in(contents(metrics));
  const std::string name = "\"step_ms\":";
  for (std::string line; std::getline(in, line);)
    if (const auto at = line.find(name); at != line.npos)
      all.push_back(std::atof(line.c_str() + at + name.size()));
  return all;
}

double median(std::vector<double> values) {
  REQUIRE_FALSE(values.empty());
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

/// Start a rank of a job that meets at a port, with its metrics in a file where it is rank 0.
pid_t start_rank(const scratch& files, int rank, int port) {
  const pid_t child = fork();
  if (child != 0) return child;
  const auto set = [](const char* name, const std::string& value) { setenv(name, value.c_str(), 1); };
  set("RANK", std::to_string(rank));
  set("LOCAL_RANK", std::to_string(rank));
  set("WORLD_SIZE", "2");
  set("LOCAL_WORLD_SIZE", "2");
  set("MASTER_ADDR", "127.0.0.1");
  set("MASTER_PORT", std::to_string(port));
  set("RANKC_SECRET", "00112233445566778899aabbccddeeff");
  const std::string err = files.path("err" + std::to_string(rank)), metrics = files.path("metrics");
  if (dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO) < 0 ||
      dup2(open(err.c_str(), O_WRONLY | O_CREAT, 0666), STDERR_FILENO) < 0)
    _exit(1);
  execl(program.c_str(), program.c_str(), "train", "--steps", "1000000", rank == 0 ? "--metrics" : nullptr,
        metrics.c_str(), nullptr);
  _exit(1);
}

int code_of(pid_t process) {
  int status = 0;
  waitpid(process, &status, 0);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

TEST_CASE("strangers: a job starts and runs under attack as if it were left alone") {
  const char* set = std::getenv("RANKC_ATTACK_SECONDS");
  const double seconds = set != nullptr ? std::atof(set) : 6;
  const scratch files;
  const std::string metrics = files.path("metrics");
  const int port = 20000 + static_cast<int>(getpid() % 10000);
  strangers attackers(port);
  const pid_t zero = start_rank(files, 0, port);
  attackers.attack(true);
  std::this_thread::sleep_for(1s);
  const pid_t one = start_rank(files, 1, port);
  const auto until = clock_of_test::now() + scaled(20);
  while (step_times(metrics).size() < 5 && clock_of_test::now() < until) std::this_thread::sleep_for(20ms);
  REQUIRE(step_times(metrics).size() >= 5);
  const long connections_at_start = attackers.connections();
  CHECK(connections_at_start > 100);

  const long before = peak_memory(zero);
  std::vector<double> quiet, attacked;
  const auto end = clock_of_test::now() + std::chrono::duration<double>(seconds);
  for (bool attack = false; clock_of_test::now() < end; attack = !attack) {
    attackers.attack(attack);
    const std::size_t first = step_times(metrics).size();
    std::this_thread::sleep_for(1s);
    const std::vector<double> all = step_times(metrics);
    std::vector<double>& into = attack ? attacked : quiet;
    into.insert(into.end(), all.begin() + static_cast<std::ptrdiff_t>(first), all.end());
  }
  const long more = peak_memory(zero) - before, made = attackers.connections() - connections_at_start;
  MESSAGE(made << " connections; a step takes " << median(attacked) << " ms under attack and "
               << median(quiet) << " ms otherwise; " << more << " KB more memory");
  CHECK(made > 100);
  CHECK(median(attacked) < most_longer * median(quiet));
  CHECK(more < most_more_kilobytes);

  attackers.attack(true);
  kill(zero, SIGUSR1);
  CHECK(code_of(zero) == 128 + SIGUSR1);
  CHECK(code_of(one) == 128 + SIGUSR1);
  const outcome alone = run(files, program + " train --steps 5 --metrics " + files.path("alone"));
  CHECK(alone.code == 0);
  const std::string wanted = losses(files.path("alone"));
  CHECK(losses(metrics).substr(0, wanted.size()) == wanted);
  const std::string err = contents(files.path("err0"));
  CHECK(said_in(err).id == 5344);
  CHECK(std::count(err.begin(), err.end(), '\n') == 2);  // and that the signal has stopped it
}
