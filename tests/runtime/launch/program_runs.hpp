// SPDX-License-Identifier: Apache-2.0
// Runs a program on the host as users start it: to its end, or until it is stopped.
#pragma once
#include "../../said.hpp"
#include "../../slowness.hpp"
#include "../trainer/scratch.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace rankc::test {

using rankc::runtime::contents;
using rankc::runtime::scratch;
using namespace std::chrono_literals;
using clock_of_test = std::chrono::steady_clock;

inline const std::string program = RANKC_TEST_PROGRAM, other_plan = RANKC_TEST_OTHER_PLAN,
                         one_rank = RANKC_TEST_ONE_RANK;

struct outcome {
  int code;
  std::string out, err;
};

inline outcome run(const scratch& files, const std::string& command) {
  const std::string out = files.path("out"), err = files.path("err"),
                    script = files.write("run.sh", command + "\n"),
                    limit = std::to_string(scaled(50).count());
  const int status =
      std::system(("timeout -k 1 " + limit + " bash " + script + " >" + out + " 2>" + err).c_str());
  return {WEXITSTATUS(status), contents(out), contents(err)};
}

/// A port that is free now, from this process's part of the range.
inline int free_port() { return 20000 + static_cast<int>(getpid() % 10000); }

/// Check the sentence about a rank that was killed.
inline void check_killed(const std::string& text, std::size_t rank, pid_t process, const char* signal,
                         const char* name) {
  CAPTURE(text);
  const std::vector<std::string> arguments = said_in(text, 5302).arguments;
  REQUIRE(arguments.size() == 6);
  CHECK(arguments[0] == std::to_string(rank));
  CHECK(arguments[2] == std::to_string(process));
  CHECK(arguments[3] == signal);
  CHECK(arguments[4] == name);
  // The signal may arrive between steps.
  CHECK((arguments[5].starts_with("in step ") || arguments[5].starts_with("between steps, after step ")));
}

/// Check the sentence about a run of 1000000 steps that a signal has stopped. `save`: where it was saved;
/// empty: it was not.
inline void check_stopped_by(const std::string& signal, const std::string& text,
                             const std::string& save = "") {
  CAPTURE(text);
  const said told = said_in(text);
  CHECK(told.id == (save.empty() ? 6168 : 6169));
  REQUIRE(told.arguments.size() == (save.empty() ? 3 : 4));
  CHECK(told.arguments[0] == signal);
  CHECK(told.arguments[2] == "1000000");
  if (!save.empty()) CHECK(told.arguments[3] == save);
}

/// The metrics' lines up to the times, which differ from run to run.
inline std::string losses(const std::string& metrics) {
  std::istringstream in(contents(metrics));
  std::string all;
  for (std::string line; std::getline(in, line);) all += line.substr(0, line.find("\"step_ms\"")) + "\n";
  return all;
}

/// How to start a run that continues until it is stopped.
struct start {
  std::vector<std::string> words = {"train", "--steps", "1000000"};
  bool processes = true;                 // --launch processes
  std::function<void()> before = [] {};  // runs in the child, before the program
  std::string file = program;
};

class running {
 public:
  /// Returns when the run has taken its first steps, or has printed its first lines if it takes none.
  explicit running(const scratch& files, const start& how = {}) : files_(files) {
    std::vector<std::string> words{how.file};
    words.insert(words.end(), how.words.begin(), how.words.end());
    const bool trains = how.words.front() == "train";
    const std::string begun = files.path(trains ? "metrics" : "out");
    if (trains) words.insert(words.end(), {"--metrics", begun});
    if (how.processes) words.insert(words.end(), {"--launch", "processes"});
    child_ = fork();
    REQUIRE(child_ >= 0);
    if (child_ == 0) become(std::move(words), how);
    const auto until = clock_of_test::now() + scaled(20);
    while (contents(begun).size() < 100 && clock_of_test::now() < until) std::this_thread::sleep_for(10ms);
    REQUIRE(contents(begun).size() >= 100);
    std::istringstream in(
        contents("/proc/" + std::to_string(child_) + "/task/" + std::to_string(child_) + "/children"));
    for (pid_t rank; in >> rank;) ranks_.push_back(rank);
    if (how.processes) REQUIRE(ranks_.size() == 2);
  }
  ~running() {
    for (const pid_t p : ranks_) ::kill(p, SIGKILL);
    if (child_ > 0) {
      ::kill(child_, SIGKILL);
      waitpid(child_, nullptr, 0);
    }
  }
  running(const running&) = delete;

  /// The started process: the launcher, or the one with all ranks.
  pid_t launcher() const { return child_; }
  pid_t rank(std::size_t r) const { return ranks_[r]; }

  /// How the launcher ended: its code, 128 + n if signal n ended it; how long that took from now; and whether
  /// all ranks have ended with it.
  struct end {
    int code;
    std::chrono::duration<double> took;
    bool all_gone;
    std::string out, err;
  };
  end wait() {
    const auto begin = clock_of_test::now();
    int status = 0;
    waitpid(child_, &status, 0);
    child_ = 0;
    bool all_gone = true;
    for (const pid_t p : ranks_) all_gone = all_gone && is_gone(p);
    return {WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status), clock_of_test::now() - begin,
            all_gone, contents(files_.path("out")), contents(files_.path("err"))};
  }
  bool has_ended() const { return kill(child_, 0) != 0 || is_gone(child_, 1); }

 private:
  [[noreturn]] void become(std::vector<std::string> words, const start& how) const {
    const std::string out = files_.path("out"), err = files_.path("err");
    for (const auto& [file, descriptor] : {std::pair{out, STDOUT_FILENO}, {err, STDERR_FILENO}})
      if (dup2(open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666), descriptor) < 0) _exit(1);
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    how.before();
    execv(how.file.c_str(), argv.data());
    _exit(1);
  }
  static bool is_gone(pid_t p, int looks = 100) {
    for (int tries = 0; tries < looks; ++tries) {
      const std::string state = contents("/proc/" + std::to_string(p) + "/stat");
      if (state.empty() || state.find(") Z ") != std::string::npos) return true;
      std::this_thread::sleep_for(10ms);
    }
    return false;
  }
  const scratch& files_;
  pid_t child_ = 0;
  std::vector<pid_t> ranks_;
};

}  // namespace rankc::test
