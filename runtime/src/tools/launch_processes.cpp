// SPDX-License-Identifier: Apache-2.0
// A launcher for one machine: the program starts itself once for each rank.
#include <rankc/runtime/tools/launch.hpp>

#include "refusal.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
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

volatile std::sig_atomic_t ended_by = 0;
void note_signal(int which) { ended_by = which; }

int free_port() {
  const int s = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  const bool found = s >= 0 && bind(s, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                     getsockname(s, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  if (s >= 0) close(s);
  if (!found) throw refusal(75, "--launch processes: this machine has no free port");
  return ntohs(address.sin_port);
}

pid_t start(int rank, int world, int port, char** argv) {
  const pid_t parent = getpid(), child = fork();
  if (child < 0) throw refusal(75, "--launch processes: rank {}: no process could be started", rank);
  if (child > 0) return child;
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(77);
  const std::string number = std::to_string(rank);
  setenv("RANK", number.c_str(), 1);
  setenv("LOCAL_RANK", number.c_str(), 1);
  setenv("WORLD_SIZE", std::to_string(world).c_str(), 1);
  setenv("LOCAL_WORLD_SIZE", std::to_string(world).c_str(), 1);
  setenv("MASTER_ADDR", "127.0.0.1", 1);
  setenv("MASTER_PORT", std::to_string(port).c_str(), 1);
  execv("/proc/self/exe", argv);
  _exit(70);
}

int code_of(int status) { return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status); }

}  // namespace

int launch_processes(const description& about, char** argv) {
  const int port = free_port();
  std::vector<pid_t> running;
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, note_signal);
  for (int rank = 0; rank < about.world(); ++rank) running.push_back(start(rank, about.world(), port, argv));
  const auto send = [&](int signal) {
    for (const pid_t child : running) kill(child, signal);
  };
  int result = 0;
  bool ending = false;
  std::chrono::steady_clock::time_point last_moment;
  while (!running.empty()) {
    int status = 0;
    const pid_t child = waitpid(-1, &status, WNOHANG);
    if (child > 0) {
      std::erase(running, child);
      if (result == 0) result = code_of(status);
    } else {
      std::this_thread::sleep_for(10ms);
    }
    if (result == 0 && ended_by != 0) result = 128 + ended_by;
    if (result != 0 && !ending) {
      ending = true;
      last_moment = std::chrono::steady_clock::now() + 10s;
      send(SIGTERM);
    }
    if (ending && std::chrono::steady_clock::now() > last_moment) send(SIGKILL);
  }
  return result;
}

}  // namespace rankc::runtime
