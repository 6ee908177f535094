// SPDX-License-Identifier: Apache-2.0
// A job of --launch processes under attack by eight strangers, from its first step to its end, compared with
// the same job without an attack.
#include "strangers.hpp"

#include <doctest/doctest.h>
#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

namespace attack_test {

namespace {

using namespace rankc::test;

constexpr double most_longer = 1.5;  // ratio of mean step times, under attack and without

int port_of(pid_t rank_zero) {
  const std::string environment = contents("/proc/" + std::to_string(rank_zero) + "/environ");
  const std::string name = "RANKC_PORT=";
  const auto at = environment.find(name);
  REQUIRE(at != environment.npos);
  return std::atoi(environment.c_str() + at + name.size());
}

double mean(const std::vector<double>& values) {
  REQUIRE_FALSE(values.empty());
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

struct measured {
  int code;
  std::string losses, err;
  double step_ms;    // the mean
  long kilobytes;    // the peak of rank 0
  long connections;  // opened by the strangers
};

measured train(long steps, bool attacked) {
  const scratch files;
  running job(files, {.words = {"train", "--steps", std::to_string(steps)}});
  std::optional<strangers> attackers;
  if (attacked) attackers.emplace(port_of(job.rank(0))).attack(true);
  long kilobytes = 0;
  while (!job.has_ended()) {
    kilobytes = std::max(kilobytes, peak_memory(job.rank(0)));
    std::this_thread::sleep_for(20ms);
  }
  const running::end ended = job.wait();
  const std::string metrics = files.path("metrics");
  return {ended.code, losses(metrics),
          ended.err,  mean(step_times(metrics)),
          kilobytes,  attacked ? attackers->connections() : 0};
}

}  // namespace

TEST_CASE("attack: a job is as right, as small and as fast as one that is left alone") {
  const char* set = std::getenv("RANKC_ATTACK_SECONDS");
  const double seconds = set != nullptr ? std::atof(set) : 60;
  const long steps = std::max(20l, std::lround(seconds * 1000 / train(20, false).step_ms));
  const measured quiet = train(steps, false), attacked = train(steps, true);
  MESSAGE(steps << " steps, " << attacked.connections << " connections; a step takes " << attacked.step_ms
                << " ms under attack and " << quiet.step_ms << " ms otherwise; rank 0 has "
                << attacked.kilobytes << " KB at most, and " << quiet.kilobytes << " KB otherwise");
  CHECK(quiet.code == 0);
  CHECK(attacked.code == 0);
  CHECK(std::count(quiet.losses.begin(), quiet.losses.end(), '\n') == steps);
  CHECK(attacked.losses == quiet.losses);
  CHECK(attacked.kilobytes - quiet.kilobytes < most_more_kilobytes);
  CHECK(attacked.step_ms < scaled(most_longer).count() * quiet.step_ms);
  CHECK(attacked.connections > 100);
  CHECK(said_in(attacked.err, 5344).id == 5344);
}

}  // namespace attack_test
