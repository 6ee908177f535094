// SPDX-License-Identifier: Apache-2.0
// Generated programs with ranks joined by the control plane and by Gloo, as processes are, compute the same
// losses, norms and weights to the last bit as with ranks as threads.
#include <rankc/launch/coordinator.hpp>
#include <rankc/launch/listen.hpp>
#include <rankc/launch/member.hpp>

#include "run.hpp"

#include <doctest/doctest.h>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace {

using namespace rankc::runtime;

constexpr int steps = 2;

/// The results of two steps and an evaluation: losses, norms and weights.
struct trained {
  std::vector<double> results;
  std::map<int, std::vector<double>> weights;  // by rank
  std::string failed;
};

trained train(const registered& program, const placement& where) {
  trained t;
  run r(program, where);
  for (int i = 0; i < steps; ++i) {
    const step_output out = r.step();
    t.results.insert(t.results.end(), {out.loss, out.grad_norm});
  }
  t.results.push_back(r.engine->evaluate());
  for (int rank = 0; rank < r.about.world(); ++rank) {
    if (!r.engine->holds(rank)) continue;
    std::vector<double>& values = t.weights[rank];
    values.resize(r.about.layouts[static_cast<std::size_t>(r.about.ranks[static_cast<std::size_t>(rank)].pp)]
                      .parameter_count);
    r.engine->read(rank, region::weights, 0, values.size(), values.data());
  }
  return t;
}

/// The same with each rank in a thread that reaches the others through its connections alone.
std::vector<trained> train_apart(const registered& program) {
  const int world = program.about->world();
  constexpr limits times{.join = std::chrono::seconds(20),
                         .silence = std::chrono::seconds(20),
                         .exchange = std::chrono::seconds(20)};
  const mac_key job = key_of_job("", "programs");
  std::vector<socket_handle> listeners;
  listeners.push_back(listen_on_loopback());
  coordinator middle(std::move(listeners), world, job, times, [](const std::string&) {});
  std::vector<trained> all(static_cast<std::size_t>(world));
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < world; ++rank)
    ranks.emplace_back([&, rank] {
      trained& own = all[static_cast<std::size_t>(rank)];
      try {
        const auto m = std::make_shared<member>(
            hello_of(*program.about, rank, world),
            member::settings{.host = "127.0.0.1", .port = middle.port(), .job = job, .times = times});
        own = train(program, {.rank = rank,
                              .local_size = world,
                              .exchange = [&](const std::string& name,
                                              const std::string& mine) { return m->gather(name, mine); },
                              .others = m});
        m->leave();
      } catch (const std::exception& e) {
        own.failed = e.what();
      }
    });
  for (std::thread& t : ranks) t.join();
  return all;
}

bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
}

}  // namespace

TEST_CASE("ranks in processes of their own compute what ranks in threads compute") {
  const char* every = std::getenv("RANKC_TEST_EVERY");  // run one in this many programs
  const int stride = every != nullptr ? std::atoi(every) : 1;
  int programs = 0, compared = 0, ranks = 0;
  for (const registered& program : host_registry) {
    if (program.about->world() == 1 || programs++ % stride != 0) continue;
    CAPTURE(program.job);
    CAPTURE(program.layout);
    const trained together = train(program, {});
    for (const trained& own : train_apart(program)) {
      CHECK(own.failed == "");
      CHECK(same_bits(own.results, together.results));
      REQUIRE(own.weights.size() == 1);
      const auto& [rank, weights] = *own.weights.begin();
      CAPTURE(rank);
      CHECK(same_bits(weights, together.weights.at(rank)));
      ++ranks;
    }
    ++compared;
  }
  MESSAGE(compared << " programs, " << ranks << " ranks");
  CHECK(programs == expected_of(programs, 206));
  CHECK(compared > 0);
}
