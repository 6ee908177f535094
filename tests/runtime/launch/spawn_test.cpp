// SPDX-License-Identifier: Apache-2.0
// A program that starts itself once for each rank.
#include <rankc/launch/spawn.hpp>

#include "../../slowness.hpp"
#include "../trainer/fake_engine.hpp"
#include "../trainer/scratch.hpp"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

namespace spawn_test {

using namespace rankc::runtime;

namespace {

void wait_for_everyone(const std::string& folder) {
  for (const char* rank : {"0", "1", "2"})
    while (contents(folder + "/" + rank).empty()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace

// spawn_ranks starts this executable again with this test case alone; RANKC_TEST_LAUNCH says what each rank
// does.
TEST_CASE("one of the processes" * doctest::skip()) {
  for (const int signal : {SIGTERM, SIGINT}) std::signal(signal, SIG_DFL);
  const std::string what = std::getenv("RANKC_TEST_LAUNCH"), rank = std::getenv("RANKC_RANK"),
                    folder = std::getenv("RANKC_TEST_FOLDER");
  std::string said;
  for (const char* name :
       {"RANKC_RANK", "RANKC_LOCAL_RANK", "RANKC_WORLD", "RANKC_LOCAL_SIZE", "RANKC_ADDR", "RANKC_PORT"})
    said += std::string(std::getenv(name)) + " ";
  said += std::to_string(getpid());
  std::ofstream(folder + "/" + rank) << said;
  if (what == "succeed") _exit(0);
  if (rank == "1") {
    wait_for_everyone(folder);
    if (what == "fail") _exit(3);
    if (what == "die") raise(SIGKILL);
    if (what == "leave") _exit(0);
    if (what == "stop") raise(SIGSTOP);
  }
  if (what == "fail" && rank == "0") _exit(77);  // a victim that ends before its cause
  if (what == "stop" || what == "leave") _exit(77);
  std::this_thread::sleep_for(std::chrono::seconds(60));
  _exit(0);
}

namespace {

struct launched {
  int code;
  double seconds;
  std::vector<std::string> said;  // by rank
};
launched launch(const char* what, int stop_with = 0) {
  const scratch files;
  const fake_program three(3, 1, 1);
  const auto start = std::chrono::steady_clock::now();
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    setenv("RANKC_TEST_LAUNCH", what, 1);
    setenv("RANKC_TEST_FOLDER", files.path().c_str(), 1);
    char name[] = "test", only[] = "-tc=one of the processes", skipped[] = "-ns", quiet[] = "-m";
    char* argv[] = {name, only, skipped, quiet, nullptr};
    _exit(spawn_ranks(three.about, argv));
  }
  if (stop_with != 0) {
    wait_for_everyone(files.path());
    kill(child, stop_with);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  launched l{WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status),
             std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(),
             {}};
  for (const char* rank : {"0", "1", "2"}) l.said.push_back(contents(files.path(rank)));
  return l;
}

}  // namespace

TEST_CASE("a program starts itself once for each rank, and tells each which it is") {
  const launched l = launch("succeed");
  CHECK(l.code == 0);
  const std::string meeting = l.said[0].substr(std::string("0 0 3 3 ").size()),
                    at = meeting.substr(0, meeting.rfind(' '));
  CHECK(at.starts_with("127.0.0.1 "));
  CHECK(std::stoi(at.substr(10)) > 0);
  for (const std::string rank : {"0", "1", "2"})
    CHECK(l.said[std::stoul(rank)].starts_with(rank + " " + rank + " 3 3 " + at + " "));
}

TEST_CASE("the process that failed gives the exit code, whoever ended first, and the others are stopped") {
  for (const auto& [what, code] :
       {std::pair{"fail", 3}, {"die", 128 + SIGKILL}, {"stop", 70}, {"leave", 70}}) {
    CAPTURE(what);
    const launched l = launch(what);
    CHECK(l.code == code);
    CHECK(l.seconds < rankc::test::scaled(5).count());  // the ranks would sleep for 60 s
  }
  for (const int signal : {SIGTERM, SIGINT}) {
    const launched l = launch("wait", signal);
    CHECK(l.code == 128 + signal);
    CHECK(l.seconds < rankc::test::scaled(5).count());
  }
}

TEST_CASE("processes end with the one that started them") {
  const launched l = launch("wait", SIGKILL);
  CHECK(l.code == 128 + SIGKILL);
  for (const std::string& said : l.said) {
    const pid_t process = static_cast<pid_t>(std::stol(said.substr(said.rfind(' '))));
    bool gone = false;
    for (int tries = 0; tries < 200 && !gone; ++tries) {
      const std::string state = contents("/proc/" + std::to_string(process) + "/stat");
      gone = state.empty() || state.find(") Z ") != std::string::npos;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    CHECK(gone);
  }
}

}  // namespace spawn_test
