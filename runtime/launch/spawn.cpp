// SPDX-License-Identifier: Apache-2.0
#include <rankc/launch/spawn.hpp>

#include <rankc/launch/board.hpp>
#include <rankc/launch/environment.hpp>
#include <rankc/launch/keys.hpp>
#include <rankc/launch/limits.hpp>
#include <rankc/launch/listen.hpp>
#include <rankc/launch/say_error.hpp>
#include <rankc/launch/stop_signals.hpp>
#include <rankc/runtime/failure.hpp>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace rankc::runtime {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

constexpr auto between_looks = 5ms;
// Limit for the other ranks after the first failure; a stopped rank does not end by itself.
constexpr auto to_end_by_themselves = limits{}.end + 500ms;

constexpr int ends_at_once = 3;  // the signal at which ranks end even while they save

/// 32 random hexadecimal digits.
std::string random_digits() {
  std::string digits;
  for (const unsigned char byte : random_nonce().substr(0, 16)) digits += fmt::format("{:02x}", byte);
  return digits;
}

/// The facts that all ranks receive. This process opens rank 0's listening socket, so that no other program
/// can take the port.
struct job {
  std::string program;
  int world;
  socket_handle listener = listen_on_loopback();
  std::string name = random_digits(), secret = random_digits();
  board ends{world};
};

void become_rank(int rank, job& j, char** argv) {
  const auto set = [](const char* name, const std::string& value) { setenv(name, value.c_str(), 1); };
  const std::string number = std::to_string(rank), world = std::to_string(j.world);
  set(spawned_variable, "1");
  set("RANKC_RANK", number);
  set("RANKC_LOCAL_RANK", number);
  set("RANKC_WORLD", world);
  set("RANKC_LOCAL_SIZE", world);
  set("RANKC_NODE", "0");
  set("RANKC_ADDR", "127.0.0.1");
  set("RANKC_PORT", std::to_string(port_of(j.listener)));
  set("RANKC_JOB", j.name);
  set("RANKC_SECRET", j.secret);
  set("RANKC_BOARD", std::to_string(j.ends.descriptor()));
  fcntl(j.ends.descriptor(), F_SETFD, 0);
  if (rank == 0) {
    set("RANKC_LISTENS_ON", std::to_string(j.listener.fd()));
    fcntl(j.listener.fd(), F_SETFD, 0);
  }
  execv("/proc/self/exe", argv);
  say_error("{}: {}\n", j.program,
            say("RC6326: --launch processes: rank {} cannot run the program of /proc/self/exe: {}", rank,
                std::strerror(errno)));
  _exit(75);
}

pid_t start(int rank, job& j, char** argv) {
  const pid_t parent = getpid(), child = fork();
  if (child < 0)
    throw failure(75, "RC5339: --launch processes: the process of rank {} could not be started: {}", rank,
                  std::strerror(errno));
  if (child > 0) {
    j.ends.begin(rank, child);
    return child;
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  setpgid(0, 0);  // a terminal's signals reach the launcher alone, which passes them on once
  if (getppid() != parent) _exit(77);
  release_stop_signals();
  become_rank(rank, j, argv);
  return 0;
}

/// The ranks' processes, how they ended, and the resulting exit code.
class rank_processes {
 public:
  rank_processes(job& j, char** argv) : job_(j) {
    for (int rank = 0; rank < j.world; ++rank) all_.push_back(start(rank, j, argv));
    running_ = all_;
  }

  bool are_left() const { return !running_.empty(); }
  bool have_failed() const { return has_failed_; }

  void send(int signal) const {
    for (const pid_t rank : running_) kill(rank, signal);
  }
  void end_all() {
    if (!has_ended_all_) send(SIGKILL);
    has_ended_all_ = true;
  }

  /// Reap one process that has ended. Returns: false if none has.
  bool take_end() {
    int status = 0;
    const pid_t child = waitpid(-1, &status, WNOHANG);
    if (child < 0 && errno == ECHILD) {  // another part of this process has waited for them
      running_.clear();
      has_failed_ = true;
      deaths_.push_back(say("RC5340: the ranks have ended, and the system does not say how"));
    }
    if (child <= 0) return child < 0;
    // A shell that became this program by exec leaves its children to this process.
    if (std::erase(running_, child) > 0) add(child, status);
    return true;
  }

  /// The exit code of the rank that failed; 70 if all failed ranks are victims or were ended here.
  int code() const {
    if (root_ != 0) return root_;
    return has_failed_ ? 70 : 0;
  }

  /// Report how signals have killed the ranks, if no rank is left that could.
  void say_deaths(const char* name) const {
    if (somebody_spoke_) return;
    for (const std::string& line : deaths_) say_error("{}: {}\n", name, line);
  }

 private:
  void add(pid_t child, int status) {
    const auto rank = static_cast<int>(std::find(all_.begin(), all_.end(), child) - all_.begin());
    job_.ends.end(rank, status);
    const int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    if (code == 0) return;
    has_failed_ = true;
    somebody_spoke_ = somebody_spoke_ || WIFEXITED(status);
    if (has_ended_all_ || code == 77) return;
    if (root_ == 0) root_ = code;
    deaths_.push_back(job_.ends.end_of(rank));
  }

  job& job_;
  std::vector<pid_t> all_, running_;
  std::vector<std::string> deaths_;
  int root_ = 0;
  bool has_failed_ = false, has_ended_all_ = false, somebody_spoke_ = false;
};

/// A rank that acted as a launcher would start processes without end.
void refuse_in_a_rank() {
  if (std::getenv(spawned_variable) == nullptr) return;
  throw failure(
      2,
      "RC5341: --launch processes: {} is set, so this process is a rank of a launcher, and a rank does "
      "not start processes; unset it if this process is not a rank",
      spawned_variable);
}

}  // namespace

int spawn_ranks(const description& about, char** argv) {
  refuse_in_a_rank();
  std::signal(SIGCHLD, SIG_DFL);  // a parent may ignore it, and then waitpid reports no child
  job j{.program = about.name, .world = about.world()};
  take_stop_signals();
  rank_processes ranks(j, argv);
  int passed_on = 0;
  clock::time_point last_moment = clock::time_point::max();
  while (ranks.are_left()) {
    if (!ranks.take_end()) std::this_thread::sleep_for(between_looks);
    const stops told = stops_so_far();
    if (told.times != passed_on) {
      passed_on = told.times;
      ranks.send(told.last);
    }
    if (last_moment == clock::time_point::max() && (ranks.have_failed() || passed_on >= ends_at_once))
      last_moment = clock::now() + to_end_by_themselves;
    if (clock::now() > last_moment) ranks.end_all();
  }
  if (passed_on != 0 && ranks.have_failed()) return 128 + stops_so_far().first;
  ranks.say_deaths(about.name);
  return ranks.code();
}

}  // namespace rankc::runtime
