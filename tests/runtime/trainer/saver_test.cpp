// SPDX-License-Identifier: Apache-2.0
// Saves during training: the saved state is that of the step that began the save, a failure costs one save,
// and only one run may save into a folder.
#include <rankc/trainer/checkpoint.hpp>
#include <rankc/trainer/folder_lock.hpp>
#include <rankc/trainer/saver.hpp>

#include "../../exit_with.hpp"
#include "checkpoints.hpp"
#include "scratch.hpp"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <fcntl.h>
#include <chrono>
#include <cstdlib>
#include <thread>

using namespace rankc::runtime;
using rankc::test::exit_of, rankc::test::exit_with, rankc::test::said, rankc::test::said_in;
namespace fs = std::filesystem;

namespace {

step_output step(fake_engine& e, std::int64_t number) {
  const std::vector<std::int32_t> tokens(16, static_cast<std::int32_t>(number % 7));
  for (int microbatch = 0; microbatch < 2; ++microbatch)
    e.set_batch(0, microbatch, tokens.data(), tokens.data());
  return e.step(
      {.lr = 0.01, .weight_decay = 0.1, .clip = 0, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .step = number});
}

/// Runs `act` in a child process. Returns: its exit code.
template <class Act>
int in_child(const Act& act) {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) _exit(act());
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

TEST_CASE("a save holds the step at which it was taken, though training goes on while it is written") {
  const scratch files;
  const fake_program program(1, 1, 1, dtype::f64, 100'000);  // some MB, so that steps run during the write
  fake_engine e(program);
  initialise(e, 1);
  saver saves(program.about, files.path(), 0, {});
  std::map<std::int64_t, std::map<std::string, std::vector<double>>> expected;
  for (std::int64_t n = 1; n <= 6; ++n) {
    step(e, n);
    if (n % 2) continue;
    expected[n] = contents_of(e);
    saves.begin(e, example_state(program.about, n));
  }
  CHECK(saves.finish());
  const auto news = saves.news();
  REQUIRE(news.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(news[i].saved);
    CHECK(news[i].line == "saved " + files.path("step_00000" + std::to_string(2 * i + 2)));
  }
  CHECK(saves.news().empty());
  for (const auto& [n, values] : expected) {
    fake_engine to(program);
    load_checkpoint(to, files.path("step_00000" + std::to_string(n)));
    CHECK(contents_of(to) == values);
  }
}

TEST_CASE("a save that finds no room is told, and the next one tries again") {
  const scratch files;
  const fake_program program(1, 1, 1);
  fake_engine e(program);
  fill_engine(e);
  CHECK(in_child([&] {
          signal(SIGXFSZ, SIG_IGN);
          saver saves(program.about, files.path(), 0, {});
          const auto one = [&](std::int64_t n, rlim_t room) {
            const rlimit limit{room, RLIM_INFINITY};
            setrlimit(RLIMIT_FSIZE, &limit);
            saves.begin(e, example_state(program.about, n));
            return saves.finish();
          };
          if (!one(1, RLIM_INFINITY) || one(2, 4096) || one(3, 100) || !one(4, RLIM_INFINITY) || one(5, 4096))
            return 1;
          const auto news = saves.news();
          if (news.size() != 5 || news[1].saved || !news[3].saved) return 2;
          const std::string file = files.path(".step_000002.unfinished/rank_00000.safetensors");
          if (said_in(news[1].line, 6625).arguments.at(0) != "2") return 3;
          return said_in(news[1].line, 5005) == said{5005, {file, "File too large"}} ? 0 : 4;
        }) == 0);
  CHECK(find_checkpoint(files.path()) == files.path("step_000004"));
  fake_engine to(program);
  load_checkpoint(to, files.path());
  CHECK(contents_of(to) == contents_of(e));
  CHECK_FALSE(fs::exists(files.path("step_000002")));
}

TEST_CASE("a process killed at any moment of its training leaves whole checkpoints alone") {
  const fake_program program(2, 1, 2, dtype::f64, 20'000);
  constexpr std::int64_t steps = 60;
  std::map<std::int64_t, std::map<std::string, std::vector<double>>> expected;
  {
    fake_engine e(program);
    initialise(e, 1);
    for (std::int64_t n = 1; n <= steps; ++n) {
      step(e, n);
      expected[n] = contents_of(e);
    }
  }
  int found = 0;
  for (std::uint64_t round = 0; round < 10; ++round) {
    const scratch files;
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      fake_engine e(program);
      initialise(e, 1);
      saver saves(program.about, files.path(), 2, {});
      for (std::int64_t n = 1; n <= steps; ++n) {
        step(e, n);
        saves.begin(e, example_state(program.about, n));
      }
      saves.finish();
      _exit(0);
    }
    while (!fs::exists(files.path("latest")) && waitpid(child, nullptr, WNOHANG) == 0)
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    std::this_thread::sleep_for(std::chrono::microseconds(splitmix64(round) % 100'000));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    for (const fs::path& folder : find_checkpoints(files.path())) {
      fake_engine to(program);
      const open_checkpoint from = open_newest(program.about, folder);
      load_checkpoint(to, from);
      CHECK(contents_of(to) == expected.at(from.state.step));
      ++found;
    }
    CHECK(open_newest(program.about, files.path()).notes.empty());
    CHECK_NOTHROW(folder_lock{files.path()});  // the lock of an ended process is free
  }
  CHECK(found >= 10);
}

TEST_CASE("two runs do not save into one folder") {
  const scratch files;
  const fake_program program(1, 1, 1);
  {
    saver first(program.about, files.path(), 0, {});
    char host[256]{};
    gethostname(host, sizeof host - 1);
    const std::string by = "process " + std::to_string(getpid()) + " on " + host;
    CHECK(in_child([&] {
            const exit_with expected{65, {6531, {files.path(), by}}};
            return exit_of([&] { saver second(program.about, files.path(), 0, {}); }) == expected ? 0 : 1;
          }) == 0);
  }
  CHECK(in_child([&] {
          return exit_of([&] { saver second(program.about, files.path(), 0, {}); }) == exit_with{} ? 0 : 1;
        }) == 0);
  files.write(".lock", "process 1 on elsewhere");  // left by an ended process
  CHECK_NOTHROW(saver(program.about, files.path(), 0, {}));
}
