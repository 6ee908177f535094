// SPDX-License-Identifier: Apache-2.0
#include "isolate.hpp"

#include "../slowness.hpp"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <list>
#include <stdexcept>

namespace fuzz {

namespace {

constexpr int exit_of_exception = 3;

struct child {
  std::size_t of;
  pid_t pid;
  std::array<int, 2> ends{};  // pipes for its lines and for its output
  std::string told;
};

[[noreturn]] void run_child(const task& work, int tells, int prints, int limit_s) {
  dup2(prints, STDOUT_FILENO);
  dup2(prints, STDERR_FILENO);
  alarm(static_cast<unsigned>(limit_s));
  int code = 0;
  try {
    work(teller(tells));
  } catch (const std::exception& e) {
    teller(tells).line(std::string("exception ") + e.what());
    code = exit_of_exception;
  }
  std::fflush(nullptr);
  _exit(code);
}

child start(std::size_t of, const task& work, int limit_s) {
  int tells[2], prints[2];
  if (pipe(tells) || pipe(prints)) throw std::runtime_error("no more pipes");
  std::fflush(nullptr);
  const pid_t pid = fork();
  if (pid < 0) throw std::runtime_error("no more processes");
  if (pid == 0) {
    close(tells[0]);
    close(prints[0]);
    run_child(work, tells[1], prints[1], limit_s);
  }
  close(tells[1]);
  close(prints[1]);
  return {of, pid, {tells[0], prints[0]}, {}};
}

/// Read the available bytes; close the pipe at its end.
void drain(int& end, std::string& to) {
  char text[4096];
  const ssize_t n = read(end, text, sizeof text);
  if (n > 0) return void(to.append(text, static_cast<std::size_t>(n)));
  close(end);
  end = -1;
}

std::string death_of(int status, int limit_s) {
  if (!WIFSIGNALED(status)) {
    if (WEXITSTATUS(status) == exit_of_exception) return "an exception";
    return WEXITSTATUS(status) ? "exit" : "";
  }
  if (WTERMSIG(status) == SIGALRM) return "the time limit of " + std::to_string(limit_s) + " s";
  return "signal " + std::to_string(WTERMSIG(status)) + " (" + strsignal(WTERMSIG(status)) + ")";
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

}  // namespace

void teller::line(std::string_view text) const {
  std::string all(text);
  for (char& c : all)
    if (c == '\n') c = ' ';
  all += '\n';
  for (std::size_t at = 0; at < all.size();) {
    const ssize_t n = write(to_, all.data() + at, all.size() - at);
    if (n <= 0) return;
    at += static_cast<std::size_t>(n);
  }
}

std::vector<outcome> run_isolated(const std::vector<task>& tasks, int at_once, int limit_s) {
  const int limit = static_cast<int>(rankc::test::scaled(limit_s).count());
  std::vector<outcome> out(tasks.size());
  std::list<child> running;
  for (std::size_t next = 0; next < tasks.size() || !running.empty();) {
    while (next < tasks.size() && running.size() < static_cast<std::size_t>(at_once)) {
      running.push_back(start(next, tasks[next], limit));
      ++next;
    }
    std::vector<pollfd> polled;
    for (const child& c : running)
      for (int end : c.ends) polled.push_back({end, POLLIN, 0});
    poll(polled.data(), polled.size(), -1);
    std::size_t i = 0;
    for (auto c = running.begin(); c != running.end();) {
      for (std::size_t e = 0; e < 2; ++e, ++i)
        if (polled[i].fd >= 0 && polled[i].revents) drain(c->ends[e], e ? out[c->of].printed : c->told);
      if (c->ends[0] >= 0 || c->ends[1] >= 0) {
        ++c;
        continue;
      }
      int status = 0;
      waitpid(c->pid, &status, 0);
      out[c->of].lines = lines_of(c->told);
      out[c->of].died = death_of(status, limit);
      c = running.erase(c);
    }
  }
  return out;
}

}  // namespace fuzz
