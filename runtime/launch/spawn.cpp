// SPDX-License-Identifier: Apache-2.0
#include <rankc/launch/spawn.hpp>

#include <rankc/launch/refusal.hpp>
#include <rankc/launch/board.hpp>
#include <rankc/launch/limits.hpp>
#include <rankc/launch/socket.hpp>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace rankc::runtime {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

constexpr auto between_looks = 5ms;
constexpr auto to_end_by_themselves =
    limits{}.end + 500ms;  // of the others, after the first has failed; a stopped one does not

volatile std::sig_atomic_t told_by = 0, times_told = 0;
void note_signal(int which) {
  told_by = which;
  times_told = times_told + 1;
}

std::string random_job() {
  unsigned long long bits[2]{};
  if (getrandom(bits, sizeof bits, 0) != sizeof bits)
    throw refusal(75, "--launch processes: this machine gives no random numbers");
  return fmt::format("{:016x}{:016x}", bits[0], bits[1]);
}

/// What all ranks are told. Rank 0 listens where this process has begun to, so that nobody else can have the
/// port.
struct job {
  int world;
  socket_handle listener = listen_at("127.0.0.1", 0);
  std::string name = random_job();
  board ends{world};
};

void become_rank(int rank, job& j, char** argv) {
  const auto set = [](const char* name, const std::string& value) { setenv(name, value.c_str(), 1); };
  const std::string number = std::to_string(rank), world = std::to_string(j.world);
  set("RANKC_RANK", number);
  set("RANKC_LOCAL_RANK", number);
  set("RANKC_WORLD", world);
  set("RANKC_LOCAL_SIZE", world);
  set("RANKC_NODE", "0");
  set("RANKC_ADDR", "127.0.0.1");
  set("RANKC_PORT", std::to_string(port_of(j.listener)));
  set("RANKC_JOB", j.name);
  set("RANKC_BOARD", std::to_string(j.ends.descriptor()));
  fcntl(j.ends.descriptor(), F_SETFD, 0);
  if (rank == 0) {
    set("RANKC_LISTENS_ON", std::to_string(j.listener.fd()));
    fcntl(j.listener.fd(), F_SETFD, 0);
  }
  execv("/proc/self/exe", argv);
  _exit(70);
}

pid_t start(int rank, job& j, char** argv) {
  const pid_t parent = getpid(), child = fork();
  if (child < 0) throw refusal(75, "--launch processes: rank {}: no process could be started", rank);
  if (child > 0) {
    j.ends.begin(rank, child);
    return child;
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  setpgid(0, 0);  // a terminal's signals come to the launcher alone, which passes them on once
  if (getppid() != parent) _exit(77);
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, SIG_DFL);
  become_rank(rank, j, argv);
  return 0;
}

/// The exit codes of ranks as they end, and what they amount to.
class outcome {
 public:
  void add(int status, bool was_killed_here) {
    const int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    if (code == 0) return;
    has_failed_ = true;
    if (code != 77 && !was_killed_here && root_ == 0) root_ = code;
  }
  bool has_failed() const { return has_failed_; }
  /// The first code of a rank that failed by itself; 70 where all that failed are victims or were killed
  /// here.
  int code() const {
    if (root_ != 0) return root_;
    return has_failed_ ? 70 : 0;
  }

 private:
  int root_ = 0;
  bool has_failed_ = false;
};

}  // namespace

int spawn_ranks(const description& about, char** argv) {
  job j{.world = about.world()};
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, note_signal);
  std::vector<pid_t> running, all_ranks;
  for (int rank = 0; rank < j.world; ++rank) running.push_back(start(rank, j, argv));
  all_ranks = running;
  const auto send = [&](int signal) {
    for (const pid_t child : running) kill(child, signal);
  };
  outcome all;
  int passed_on = 0;
  bool killed = false;
  clock::time_point last_moment = clock::time_point::max();
  while (!running.empty()) {
    int status = 0;
    const pid_t child = waitpid(-1, &status, WNOHANG);
    if (child > 0) {
      j.ends.end(static_cast<int>(std::find(all_ranks.begin(), all_ranks.end(), child) - all_ranks.begin()),
                 status);
      std::erase(running, child);
      all.add(status, killed);
    } else {
      std::this_thread::sleep_for(between_looks);
    }
    if (times_told != passed_on) {
      passed_on = times_told;
      send(told_by);  // ranks end after the step under way, and when it comes again at once
    }
    if ((all.has_failed() || passed_on > 1) && last_moment == clock::time_point::max())
      last_moment = clock::now() + to_end_by_themselves;
    if (!killed && clock::now() > last_moment) {
      killed = true;
      send(SIGKILL);
    }
  }
  return passed_on != 0 && all.has_failed() ? 128 + told_by : all.code();
}

}  // namespace rankc::runtime
