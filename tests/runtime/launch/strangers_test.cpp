// SPDX-License-Identifier: Apache-2.0
// Eight clients without the secret attack a job. The job starts, and its memory, step times and losses are
// those of an undisturbed job. The attack begins before the job; seconds with and without it alternate.
#include "strangers.hpp"

#include <doctest/doctest.h>
#include <algorithm>

namespace strangers_test {

namespace {

using namespace rankc::test;

constexpr double most_longer = 2;  // ratio of step times, under attack and without

double median(std::vector<double> values) {
  REQUIRE_FALSE(values.empty());
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

/// Start a rank of a job whose rank 0 listens at a port. Rank 0 writes its metrics to a file.
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
  CHECK(std::count(err.begin(), err.end(), '\n') == 2);  // the second line: the signal has stopped it
}

}  // namespace strangers_test
