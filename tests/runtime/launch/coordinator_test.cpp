// SPDX-License-Identifier: Apache-2.0
// The control plane: how ranks meet, agree, fail and end.
#include "control_jobs.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <new>

namespace control_test {

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
    CHECK(j.lines.empty());
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
    const std::string zero = "rank 0 (here, process 1000)", two = "rank 2 (here, process 1002)";
    CHECK(t.starts_with("2: RC5348: "));
    CHECK(said_in(t).arguments.back().starts_with("RC5323: "));
    CHECK(said_in(t, 5323) == said{5323, {two, "q 02", zero, "p 01", "2", "send 1F0", "0", "receive 1F0"}});
    CHECK(said_in(t, 5320) == said{5320, {"binary", two, "b", zero, "a"}});
  }
}

TEST_CASE("a rank that is there twice, one that does not come and one of another world are named") {
  {
    job j(3);
    const auto thrown = together(3, [&](int r) { j.join(rank_of(std::min(r, 1), 3)); });
    const std::string one = "rank 1 (here, process 1001)";
    for (const std::string& t : thrown) {
      CHECK(said_in(t, 5316) == said{5316, {one, one}});
      CHECK(said_in(t, 5317) == said{5317, {"2", "3 of here"}});
    }
  }
  {
    job j(4);
    const auto start = clock_of_test::now();
    const auto thrown = together(2, [&](int r) { j.join(2 * r); });
    CHECK(seconds_since(start) < scaled(3).count());
    for (const std::string& t : thrown) {
      CHECK(t.starts_with("75: "));
      CHECK(said_in(t, 5318) == said{5318, {"1 and 3", "2 of here"}});
    }
  }
  {
    job j(2,
          {.join = scaled_ms(30), .silence = scaled_ms(1.5), .end = scaled_ms(1), .exchange = scaled_ms(1)});
    const auto start = clock_of_test::now();
    const std::string thrown = refusal_of([&] { j.join(rank_of(0, 5)); });
    CHECK(seconds_since(start) < scaled(5).count());  // less than the time to join
    CHECK(said_in(thrown, 5317).arguments.front() == "1");
  }
}

TEST_CASE("a rank that comes after the start is told so") {
  job j(2);
  std::vector<std::unique_ptr<member>> members(2);
  for (const std::string& t : together(2, [&](int r) { members[static_cast<std::size_t>(r)] = j.join(r); }))
    CHECK(t == nothing);
  const std::string late = refusal_of([&] { j.join(1); });
  CHECK(late.starts_with("75: RC"));
  CHECK(said_in(late) == said{5346, {"rank 1 (here, process 1001)", "2"}});
  for (const std::string& t : together(2, [&](int r) { members[static_cast<std::size_t>(r)]->leave(); }))
    CHECK(t == nothing);
  CHECK(j.lines.empty());
}

TEST_CASE("a port where nobody listens, and a program that is no coordinator, are named") {
  const auto start = clock_of_test::now();
  const std::string unanswered = refusal_of([&] { connect_to("127.0.0.1", 1, in(0.3)); });
  CHECK(seconds_since(start) < scaled(1).count());
  CHECK(unanswered.starts_with("75: RC5337: "));
  // Arguments 3 and 4: how long it tried, and how often.
  const auto arguments = said_in(unanswered).arguments;
  REQUIRE(arguments.size() == 6);
  CHECK(arguments[0] == "127.0.0.1");
  CHECK(arguments[1] == "1");
  CHECK(arguments[2] == "127.0.0.1");
  CHECK(arguments[5] == "Connection refused");
  const std::string unknown = refusal_of([&] { connect_to("no.such.host.invalid", 1, in(0.1)); });
  CHECK(unknown.starts_with("75: RC5337: "));
  CHECK(said_in(unknown).arguments[0] == "no.such.host.invalid");
  CHECK(said_in(unknown).arguments[2] == "none");

  const socket_handle other = listen_on_loopback();
  std::atomic<bool> over = false;
  std::thread closes([&] {
    while (!over) {
      accept_from(other);
      std::this_thread::sleep_for(5ms);
    }
  });
  std::vector<std::string> reasons;
  const std::string ended = refusal_of([&] {
    member(rank_of(0, 2), {.host = "127.0.0.1",
                           .port = port_of(other),
                           .job = key_of_test,
                           .times = short_limits,
                           .waits = [&](const std::string& why) { reasons.push_back(why); }});
  });
  over = true;
  closes.join();
  CHECK(ended.starts_with("75: RC"));
  const auto named = said_in(ended, 5325).arguments;  // arguments 2 and 3: for how long, and how often
  REQUIRE(named.size() == 4);
  CHECK(named[0] == "127.0.0.1");
  CHECK(named[1] == std::to_string(port_of(other)));
  CHECK(reasons.size() > 1);
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
    CHECK(thrown[r].starts_with("77: RC"));
    CHECK(said_in(thrown[r]) == said{5327, {"rank 1, step 3, 1F0: broken"}});
    CHECK(said_in(heard[r]) == said{5327, {"rank 1, step 3, 1F0: broken"}});
  }
}

TEST_CASE("a rank that goes without a word is the cause, not those who noticed it first") {
  job j(3);
  const auto thrown = together(3, [&](int r) {
    auto m = j.join(r);
    m->gather("all are there", "");
    if (r == 2) {
      std::this_thread::sleep_for(100ms);
      return m.reset();
    }
    if (r == 0) {
      const root_cause c = m->report(77, "rank 2 does not answer any more");
      throw failure::reported(77, std::to_string(c.rank) + " " + c.text);
    }
    m->leave();
  });
  const said gone{5343, {"rank 2 (here, process 1002)", "unknown"}};
  CHECK(thrown[0].starts_with("77: 2 RC5343: "));
  CHECK(said_in(thrown[0]) == gone);
  CHECK(thrown[1].starts_with("77: RC5327: "));
  CHECK(said_in(thrown[1], 5343) == gone);
}

TEST_CASE("a victim whose cause is never heard of is the cause itself") {
  job j(2);
  const auto thrown = together(2, [&](int r) {
    const auto m = j.join(r);
    if (r == 0) m->report(77, "rank 1 has not sent what is waited for");
    else m->leave();
  });
  CHECK(thrown[1].starts_with("77: RC"));
  CHECK(said_in(thrown[1]) == said{5327, {"rank 1 has not sent what is waited for"}});
}

TEST_CASE("a rank that is silent, and one that does not come to an exchange, are named in time") {
  job j(2);
  const auto start = clock_of_test::now();
  const auto thrown = together(2, [&](int r) {
    if (r == 1) {  // joins, and sends nothing more
      coordinator_link silent = j.link();
      send(silent, frame_kind::hello, pack(rank_of(1, 2)));
      std::this_thread::sleep_for(scaled(1.5));
      return;
    }
    j.join(r)->leave();
  });
  CHECK(thrown[0].starts_with("77: RC5327: "));
  const auto silent = said_in(thrown[0], 5347).arguments;  // argument 1: for how long
  REQUIRE(silent.size() == 3);
  CHECK(silent[0] == "rank 1 (here, process 1001)");
  CHECK(silent[2] == "unknown");
  CHECK(seconds_since(start) < scaled(4).count());
  job k(2);
  const auto late = together(2, [&](int r) {
    const auto m = k.join(r);
    if (r == 1) m->gather("ids", "");
    else m->leave();
  });
  for (const std::string& t : late) {
    CHECK(t.starts_with("77: RC5327: "));
    CHECK(said_in(t, 5349) ==
          said{5349,
               {"ids 1", std::to_string(whole_seconds(scaled(0.6))), "0", "0", "at an unknown position"}});
  }
}

namespace {

/// A coordinator that tells one rank that all agree, and the address of its data connections, and sends
/// nothing more. Returns: the connection.
socket_handle agree_with_one(const socket_handle& listener, const std::string& data_address) {
  socket_handle s;
  while (!(s = accept_from(listener))) std::this_thread::sleep_for(1ms);
  std::string bytes;
  while (bytes.size() < 24 + nonce_bytes + sizeof(mac_key)) receive_into(s, bytes, 1000);
  frame_reader reader(opening_key(key_of_test));
  reader.add(bytes);
  const std::string theirs = reader.next()->body, mine = random_nonce();
  send_all(s, frame_writer(answer_key(key_of_test, theirs)).encode(frame_kind::open, mine), in(1));
  CHECK(wait_for_bytes(s, in(1)));  // the hello
  frame_writer writer(keys_of_connection(key_of_test, theirs, mine).to_rank);
  const std::string agreed =
      body_writer().add(std::uint64_t{0}).add("").add(data_address).add(std::uint64_t{1}).take();
  send_all(s, writer.encode(frame_kind::verdict, agreed), in(1));
  return s;
}

}  // namespace

TEST_CASE("when the coordinator's process goes, or is silent, the others know") {
  auto j = std::make_unique<job>(2);
  // The coordinator lives in rank 0's process. Here its destructor ends that, and closes all connections
  // after two seconds.
  const std::string port = std::to_string(j->middle.port());
  std::vector<std::unique_ptr<member>> members(2);
  together(2, [&](int r) { members[static_cast<std::size_t>(r)] = j->join(r); });
  const auto start = clock_of_test::now();
  std::thread ends([&] { j.reset(); });
  const std::string thrown = refusal_of([&] { members[1]->leave(); });
  CHECK(said_in(thrown, 5328) == said{5328, {"rank 0 at 127.0.0.1 port " + port}});
  CHECK(seconds_since(start) < scaled(5).count());
  ends.join();
  // A coordinator that answers hello and sends nothing more.
  const socket_handle silent = listen_on_loopback();
  std::thread answers([&] {
    const socket_handle s = agree_with_one(silent, "127.0.0.1");
    std::this_thread::sleep_for(scaled(1.5));
  });
  member m(rank_of(1, 2),
           {.host = "127.0.0.1", .port = port_of(silent), .job = key_of_test, .times = short_limits});
  const auto silence = said_in(refusal_of([&] { m.leave(); }), 5329).arguments;  // argument 1: for how long
  REQUIRE(silence.size() == 2);
  CHECK(silence[0] == fmt::format("rank 0 at 127.0.0.1 port {}", port_of(silent)));
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
      return rank_position{};
    });
    std::this_thread::sleep_for(scaled(1.7));
  });
  CHECK(ended == "rank 0: broken");
  CHECK(asked >= 2);
  CHECK(thrown[0] == nothing);
}

TEST_CASE("a data address that is none of this machine is refused with a sentence") {
  const socket_handle far = listen_on_loopback();
  std::thread answers([&] {
    const socket_handle s = agree_with_one(far, "192.0.2.1");  // reserved for documentation
    std::this_thread::sleep_for(scaled(0.3));
  });
  member m(rank_of(1, 2),
           {.host = "127.0.0.1", .port = port_of(far), .job = key_of_test, .times = short_limits});
  const std::string refused = refusal_of([&] { m.connect(); });
  answers.join();
  if (refused.starts_with("1: ")) return;  // a build without Gloo
  CHECK(refused.starts_with("75: "));
  CHECK(said_in(refused, 6327).arguments.at(0) == "192.0.2.1");
}

TEST_CASE("an exception in a thread of the control plane is a failure of the job") {
  job j(2);
  std::vector<std::unique_ptr<member>> members(2);
  together(2, [&](int r) { members[static_cast<std::size_t>(r)] = j.join(r); });
  members[1]->on_look([]() -> rank_position { throw std::bad_alloc(); });
  CHECK(said_in(refusal_of([&] { members[1]->gather("ids", ""); }), 6321).arguments.at(0) == "1");
  CHECK(said_in(refusal_of([&] { members[0]->gather("more", ""); }), 5327).id == 5327);
}

TEST_CASE("an exception in the coordinator's thread ends all ranks") {
  int told = 0;
  coordinator middle(listen_at("127.0.0.1", 0, false, in(1)).sockets, 2, key_of_test, short_limits,
                     [&](const std::string& line) {
                       if (++told == 1) throw std::bad_alloc();
                       CHECK(said_in(line) == said{6320, {"std::bad_alloc"}});
                     });
  std::vector<std::unique_ptr<member>> members(2);
  together(2, [&](int r) {
    members[static_cast<std::size_t>(r)] = std::make_unique<member>(
        rank_of(r, 2),
        member::settings{
            .host = "127.0.0.1", .port = middle.port(), .job = key_of_test, .times = short_limits});
  });
  const socket_handle stranger = connect_to("127.0.0.1", middle.port(), in(1), {});
  send_all(stranger, "GET / HTTP/1.1\r\n\r\n", in(1));
  for (const auto& m : members)
    CHECK(said_in(refusal_of([&] { m->leave(); }), 5328).arguments.at(0).starts_with("rank 0 at "));
  members.clear();
  CHECK(told == 2);
}

TEST_CASE("ranks that are told to stop at different moments all stop after the same step") {
  // Steps take no time: on a busy machine many pass before the coordinator hears.
  constexpr int most = 100000;
  for (int round = 0; round < 50; ++round) {
    CAPTURE(round);
    job j(3);
    std::vector<int> last(3), signals(3);
    std::vector<std::atomic<int>> done(most);
    const auto thrown = together(3, [&](int r) {
      const auto m = j.join(r);
      for (int step = 1; step < most; ++step) {
        ++done[step];  // a step ends when all ranks have taken it
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
