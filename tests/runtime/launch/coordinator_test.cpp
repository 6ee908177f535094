// SPDX-License-Identifier: Apache-2.0
// The control plane: ranks are threads here, each with a connection of its own.
#include <rankc/launch/coordinator.hpp>
#include <rankc/launch/frame.hpp>
#include <rankc/launch/member.hpp>

#include "../../slowness.hpp"
#include "../trainer/scratch.hpp"

#include <doctest/doctest.h>
#include <dirent.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <algorithm>
#include <memory>
#include <mutex>
#include <thread>

namespace control_test {

using namespace rankc::runtime;
using namespace std::chrono_literals;
using clock_of_test = std::chrono::steady_clock;

namespace {

using rankc::test::scaled;

std::chrono::milliseconds scaled_ms(double seconds) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(scaled(seconds));
}

const limits short_limits{
    .join = scaled_ms(1), .silence = scaled_ms(0.8), .end = scaled_ms(0.5), .exchange = scaled_ms(0.6)};

deadline in(double seconds) { return clock_of_test::now() + scaled_ms(seconds); }

hello rank_of(int rank, int world) {
  return {.rank = rank,
          .world = world,
          .host = "here",
          .pid = 1000 + rank,
          .plan = "p 01",
          .facts = {{"binary", "a"}}};
}

struct job {
  int world;
  std::uint64_t nonce = 42;
  limits times = short_limits;
  std::string host = "127.0.0.1";
  std::mutex mutex{};
  std::vector<std::string> said{};
  coordinator middle{listen_at(host, 0), world, nonce, times, [this](const std::string& line) {
                       const std::lock_guard lock(mutex);
                       said.push_back(line);
                     }};
  job(int w, limits l = short_limits, std::string at = "127.0.0.1")
      : world(w), times(l), host(std::move(at)) {}

  std::unique_ptr<member> join(int rank, member::settings also = {}) {
    return join(rank_of(rank, world), std::move(also));
  }
  std::unique_ptr<member> join(const hello& who, member::settings also = {}) {
    also.host = host;
    also.port = middle.port();
    if (also.job == 0) also.job = nonce;
    also.times = times;
    return std::make_unique<member>(who, std::move(also));
  }
};

/// Run one function per rank at the same time; what each throws.
template <class Act>
std::vector<std::string> together(int world, const Act& act) {
  std::vector<std::string> thrown(static_cast<std::size_t>(world));
  std::vector<std::thread> threads;
  for (int r = 0; r < world; ++r)
    threads.emplace_back([&, r] { thrown[static_cast<std::size_t>(r)] = refusal_of([&] { act(r); }); });
  for (std::thread& t : threads) t.join();
  return thrown;
}

double seconds_since(clock_of_test::time_point start) {
  return std::chrono::duration<double>(clock_of_test::now() - start).count();
}

int open_files() {
  int count = 0;
  DIR* folder = opendir("/proc/self/fd");
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count;
}

const std::string nothing = "nothing was thrown";

}  // namespace

TEST_CASE("ranks meet, exchange texts as often as they like, and end together") {
  for (const char* host : {"127.0.0.1", "localhost", "::1"}) {
    CAPTURE(host);
    job j(4, short_limits, host);
    for (const std::string& t : together(4, [&](int r) {
           const auto m = j.join(r);
           for (int round = 0; round < 3; ++round) {
             const auto all = m->gather("ids", std::to_string(10 * round + r));
             if (all != std::vector<std::string>{std::to_string(10 * round), std::to_string(10 * round + 1),
                                                 std::to_string(10 * round + 2),
                                                 std::to_string(10 * round + 3)})
               throw failure::reported(1, "other texts");
           }
           m->leave();
         }))
      CHECK(t == nothing);
    CHECK(j.said.empty());
  }
}

TEST_CASE("512 ranks meet in less than two seconds") {
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = std::min<rlim_t>(files.rlim_max, 4096);
  setrlimit(RLIMIT_NOFILE, &files);
  REQUIRE(files.rlim_cur > 1100);
  constexpr int world = 512;
  job j(world, limits{});
  std::vector<std::unique_ptr<member>> members(world);
  const auto start = clock_of_test::now();
  const auto thrown = together(world, [&](int r) { members[static_cast<std::size_t>(r)] = j.join(r); });
  const double seconds = seconds_since(start);
  MESSAGE("512 ranks met in " << seconds << " s");
  CHECK(seconds < scaled(2).count());
  CHECK(std::count(thrown.begin(), thrown.end(), nothing) == world);
  for (const std::string& t : together(world, [&](int r) { members[static_cast<std::size_t>(r)]->leave(); }))
    CHECK(t == nothing);
}

TEST_CASE("ranks that do not agree all hear the same verdict") {
  job j(3);
  const auto thrown = together(3, [&](int r) {
    hello h = rank_of(r, 3);
    if (r == 2) {
      h.plan = "q 02";
      h.facts[0].second = "b";
    }
    j.join(h, {.listing = [r] { return r == 2 ? "dims\nsend 1F0\n" : "dims\nreceive 1F0\n"; }});
  });
  for (const std::string& t : thrown) {
    CHECK(t.starts_with("2: the ranks cannot start together ("));
    CHECK(t.ends_with(
        "s after the first): the plan of rank 2 (here, process 1002) is q 02, that of rank 0 (here, "
        "process 1000) is p 01; the first "
        "difference: rank 0 has \"receive 1F0\", rank 2 has \"send 1F0\"; binary of rank 2 (here, process "
        "1002) is b, that of rank 0 (here, "
        "process 1000) is a"));
  }
}

TEST_CASE("a rank that is there twice, one that does not come and one of another world are named") {
  {
    job j(3);
    const auto thrown = together(3, [&](int r) { j.join(rank_of(std::min(r, 1), 3)); });
    for (const std::string& t : thrown)
      CHECK(t.find("are the same rank; each must be there once; rank 2 has not come; arrived: 3 of here") !=
            std::string::npos);
  }
  {
    job j(4);
    const auto start = clock_of_test::now();
    const auto thrown = together(2, [&](int r) { j.join(2 * r); });
    CHECK(seconds_since(start) < scaled(3).count());
    for (const std::string& t : thrown) CHECK(t.ends_with("ranks 1 and 3 have not come; arrived: 2 of here"));
  }
  {
    job j(2,
          {.join = scaled_ms(30), .silence = scaled_ms(1.5), .end = scaled_ms(1), .exchange = scaled_ms(1)});
    const auto start = clock_of_test::now();
    const std::string thrown = refusal_of([&] { j.join(rank_of(0, 5)); });
    CHECK(seconds_since(start) < scaled(5).count());  // not the whole time to join
    CHECK(thrown.find("rank 1 has not come") != std::string::npos);
  }
}

TEST_CASE(
    "a client that is no rank is turned away and mentioned once; ranks of another job and late ones are told "
    "why") {
  job j(2);
  for (const char* junk : {"GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01", ""}) {
    const socket_handle s = connect_to("127.0.0.1", j.middle.port(), in(1));
    send_all(s, junk, in(1));
  }
  const std::string other = refusal_of([&] { j.join(rank_of(1, 2), {.job = 43}); });
  CHECK(other ==
        "75: port " + std::to_string(j.middle.port()) +
            " is another job's; two jobs can not meet at one port: set MASTER_PORT to a free one for this "
            "job, or wait until the other has "
            "ended");
  std::vector<std::unique_ptr<member>> members(2);
  for (const std::string& t : together(2, [&](int r) { members[static_cast<std::size_t>(r)] = j.join(r); }))
    CHECK(t == nothing);
  CHECK(refusal_of([&] { j.join(1); }) ==
        "75: rank 1 (here, process 1001) has come after the job has started with all its 2 ranks");
  for (const std::string& t : together(2, [&](int r) { members[static_cast<std::size_t>(r)]->leave(); }))
    CHECK(t == nothing);
  const std::lock_guard lock(j.mutex);
  REQUIRE(j.said.size() == 1);
  CHECK(j.said[0] ==
        "a client at 127.0.0.1 is no rank of this job and was turned away; more of them are not reported");
}

TEST_CASE("a port that is taken, and one where nobody listens, are named") {
  const socket_handle taken = listen_at("127.0.0.1", 0);
  const std::string port = std::to_string(port_of(taken));
  for (const char* host : {"127.0.0.1", "some-name"})
    CHECK(refusal_of([&] { listen_at(host, port_of(taken)); }) ==
          "75: port " + port +
              ": is taken by another program of this machine; set MASTER_PORT to a free port, on all ranks "
              "alike (ss "
              "-ltnp shows "
              "whose it is)");
  const auto start = clock_of_test::now();
  const std::string unanswered = refusal_of([&] { connect_to("127.0.0.1", 1, in(0.3)); });
  CHECK(seconds_since(start) < scaled(1).count());
  CHECK(unanswered.starts_with("75: rank 0 at 127.0.0.1 port 1 (127.0.0.1): has not answered in "));
  CHECK(unanswered.find("Connection refused") != std::string::npos);
  CHECK(refusal_of([&] {
          connect_to("no.such.host.invalid", 1, in(0.1));
        }).starts_with("75: rank 0 at no.such.host.invalid port 1: "));
  // A listener that is no coordinator.
  member::settings s{.host = "127.0.0.1", .port = port_of(taken), .job = 42, .times = short_limits};
  std::thread closes([&] {
    std::this_thread::sleep_for(scaled(0.2));
    accept_from(taken);
  });
  CHECK(refusal_of([&] {
          member(rank_of(0, 2), s);
        }).ends_with("has ended the connection before the start; it may not be a program of rankc"));
  closes.join();
}

TEST_CASE("the first failure is told to all, who know that it is another's") {
  job j(3);
  const auto start = clock_of_test::now();
  std::vector<std::string> heard(3);
  const auto thrown = together(3, [&](int r) {
    const auto m = j.join(r);
    m->on_failure([&, r](const std::string& cause) { heard[static_cast<std::size_t>(r)] = cause; });
    if (r == 1) {
      const root_cause c = m->report(70, "rank 1, step 3, 1F0: broken");
      CHECK(c.rank == 1);
    } else {
      m->gather("what never comes", "");
    }
  });
  CHECK(seconds_since(start) < scaled(0.5).count());
  CHECK(thrown[1] == nothing);
  CHECK(heard[1] == "");
  for (const std::size_t r : {0u, 2u}) {
    CHECK(thrown[r] == "77: stopped, because rank 1, step 3, 1F0: broken");
    CHECK(heard[r] == "stopped, because rank 1, step 3, 1F0: broken");
  }
}

TEST_CASE("a rank that goes without a word is the cause, not those who noticed it first") {
  job j(3);
  const auto thrown = together(3, [&](int r) {
    auto m = j.join(r);
    m->gather("all are there", "");
    if (r == 2) {
      std::this_thread::sleep_for(scaled(0.1));
      return m.reset();
    }
    if (r == 0) {
      const root_cause c = m->report(77, "rank 2 does not answer any more");
      throw failure::reported(77, std::to_string(c.rank) + " " + c.text);
    }
    m->leave();
  });
  CHECK(thrown[0] ==
        "77: 2 rank 2 (here, process 1002) has gone without a word: it was killed, or has ended in the "
        "middle, or its "
        "machine is lost");
  CHECK(thrown[1] ==
        "77: stopped, because rank 2 (here, process 1002) has gone without a word: it was killed, or has "
        "ended in the "
        "middle, or its machine is lost");
}

TEST_CASE("a victim whose cause is never heard of is the cause itself") {
  job j(2);
  const auto thrown = together(2, [&](int r) {
    const auto m = j.join(r);
    if (r == 0) m->report(77, "rank 1 has not sent what is waited for");
    else m->leave();
  });
  CHECK(thrown[1] == "77: stopped, because rank 1 has not sent what is waited for");
}

TEST_CASE("a rank that is silent, and one that does not come to an exchange, are named in time") {
  job j(2);
  const auto start = clock_of_test::now();
  const auto thrown = together(2, [&](int r) {
    if (r == 1) {  // joins, and says nothing more
      const socket_handle s = connect_to("127.0.0.1", j.middle.port(), in(1));
      send_all(s, encode({frame_kind::hello, 42, pack(rank_of(1, 2))}), in(1));
      std::this_thread::sleep_for(scaled(1.5));
      return;
    }
    j.join(r)->leave();
  });
  CHECK(thrown[0].starts_with(
      "77: stopped, because rank 1 (here, process 1001) has given no sign of life for "));
  CHECK(thrown[0].find(" s: it is stopped, or its machine is out of reach") != std::string::npos);
  CHECK(seconds_since(start) < scaled(4).count());
  job k(2);
  const auto late = together(2, [&](int r) {
    const auto m = k.join(r);
    if (r == 1) m->gather("ids", "");
    else m->leave();
  });
  for (const std::string& t : late)
    CHECK(t ==
          fmt::format("77: stopped, because rank 0: has not come to the exchange \"ids 1\" within {:.0f} s, "
                      "where the others wait",
                      scaled(0.6).count()));
}

TEST_CASE("when the coordinator's process goes, or is silent, the others know") {
  auto j = std::make_unique<job>(2);
  // Rank 0's process is the coordinator's: here its destructor, which closes all connections after two
  // seconds.
  std::vector<std::unique_ptr<member>> members(2);
  together(2, [&](int r) { members[static_cast<std::size_t>(r)] = j->join(r); });
  const auto start = clock_of_test::now();
  std::thread ends([&] { j.reset(); });
  const std::string thrown = refusal_of([&] { members[1]->leave(); });
  CHECK(thrown.find("has gone, and with it the connection of all ranks") != std::string::npos);
  CHECK(seconds_since(start) < scaled(5).count());
  ends.join();
  // One that answers hello and says nothing more.
  const socket_handle silent = listen_at("127.0.0.1", 0);
  std::thread answers([&] {
    socket_handle s;
    while (!(s = accept_from(silent))) std::this_thread::sleep_for(1ms);
    send_all(s,
             encode({frame_kind::verdict, 42,
                     body_writer().add(std::uint64_t{0}).add("").add("127.0.0.1").take()}),
             in(1));
    std::this_thread::sleep_for(scaled(1.5));
  });
  member m(rank_of(1, 2), {.host = "127.0.0.1", .port = port_of(silent), .job = 42, .times = short_limits});
  CHECK(refusal_of([&] { m.leave(); }).find("has given no sign of life for ") != std::string::npos);
  answers.join();
}

TEST_CASE(
    "a process that does not come back after another's failure is ended, and is asked for where it is") {
  job j(2);
  std::atomic<int> asked = 0;
  std::string ended;
  const auto thrown = together(2, [&](int r) {
    if (r == 0) {
      const auto m = j.join(r);
      std::this_thread::sleep_for(scaled(0.7));
      m->report(70, "rank 0: broken");
      std::this_thread::sleep_for(scaled(1));
      return;
    }
    const auto m = j.join(r, {.too_late = [&](const root_cause& c) { ended = c.text; }});
    m->on_look([&] {
      ++asked;
      return standing{};
    });
    std::this_thread::sleep_for(scaled(1.7));
  });
  CHECK(ended == "rank 0: broken");
  CHECK(asked >= 2);
  CHECK(thrown[0] == nothing);
}

TEST_CASE("ranks that are told to stop at different moments all stop after the same step") {
  constexpr int most = 100000;  // steps of no time: a busy machine takes many until the coordinator has heard
  for (int round = 0; round < 50; ++round) {
    CAPTURE(round);
    job j(3);
    std::vector<int> last(3), signals(3);
    std::vector<std::atomic<int>> done(most);
    const auto thrown = together(3, [&](int r) {
      const auto m = j.join(r);
      for (int step = 1; step < most; ++step) {
        ++done[step];  // a step ends when all have taken it
        while (done[step] < 3) std::this_thread::yield();
        const bool told = (r == 1 && step >= 5 + round) || (r == 2 && step >= 6);
        signals[static_cast<std::size_t>(r)] = m->agreed_stop(step, told ? 10 + r : 0);
        last[static_cast<std::size_t>(r)] = step;
        if (signals[static_cast<std::size_t>(r)] != 0) break;
      }
      m->leave();
    });
    for (const std::string& t : thrown) CHECK(t == nothing);
    CHECK(last[0] == last[1]);
    CHECK(last[0] == last[2]);
    CHECK(last[0] < most - 1);
    CHECK(signals[0] >= 11);
    CHECK(signals[0] == signals[1]);
    CHECK(signals[0] == signals[2]);
  }
}

TEST_CASE(
    "at a name, rank 0 listens at every address of its machine: also at those that Debian gives the "
    "machine's name") {
  const socket_handle s = listen_at("some-name", 0);
  for (const char* host : {"127.0.0.1", "127.0.1.1", "::1", "localhost"}) {
    CAPTURE(host);
    CHECK(refusal_of([&] { connect_to(host, port_of(s), in(1)); }) == nothing);
  }
}

TEST_CASE("nothing is left open after many starts and ends") {
  const int before = open_files();
  for (int round = 0; round < 100; ++round) {
    job j(2);
    together(2, [&](int r) {
      const auto m = j.join(r);
      if (round % 2 == 0) m->leave();
      else m->report(70, "broken");
    });
  }
  CHECK(open_files() == before);
}

}  // namespace control_test
