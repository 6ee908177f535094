// SPDX-License-Identifier: Apache-2.0
// The addresses on which rank 0 listens. Clients without the job's key neither learn nor disturb anything.
#include "control_jobs.hpp"

#include <rankc/launch/file_limit.hpp>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/resource.h>

namespace control_test {

namespace {

/// Everything that the coordinator answers to some bytes, until it closes the connection.
std::string answer_to(job& j, const std::string& bytes) {
  const socket_handle s = connect_to("127.0.0.1", j.middle.port(), in(1));
  send_all(s, bytes, in(1));
  std::string answer;
  const deadline until = in(10);
  while (wait_for_bytes(s, until) && receive_into(s, answer, 1000) != received::end) {
  }
  CHECK(clock_of_test::now() < until);
  return answer;
}

/// Whether the other end closes a connection soon.
bool is_closed(const socket_handle& s, double seconds) {
  std::string bytes;
  const deadline until = in(seconds);
  while (wait_for_bytes(s, until))
    if (receive_into(s, bytes, 1000) == received::end) return true;
  return false;
}

/// Run a job of two ranks to its end.
void run_to_end(job& j) {
  std::vector<std::unique_ptr<member>> members(2);
  for (const std::string& t : together(2, [&](int r) { members[static_cast<std::size_t>(r)] = j.join(r); }))
    CHECK(t == nothing);
  for (const std::string& t : together(2, [&](int r) { members[static_cast<std::size_t>(r)]->leave(); }))
    CHECK(t == nothing);
}

}  // namespace

TEST_CASE("a stranger is told nothing, and the log mentions one of them") {
  job j(2, {.join = scaled_ms(30)});
  const mac_key other = key_of_job("a secret", "another job");
  const std::string nonce = random_nonce();
  const std::string of_others = frame_writer(opening_key(other)).encode(frame_kind::open, nonce);
  for (const std::string& bytes :
       {std::string("GET / HTTP/1.1\r\n\r\n"), std::string("\x16\x03\x01"), of_others,
        frame_writer(opening_key(key_of_test)).encode(frame_kind::hello, pack(rank_of(1, 2))),
        frame_writer(opening_key(key_of_test)).encode(frame_kind::open, "not a nonce")})
    CHECK(answer_to(j, bytes) == "");
  run_to_end(j);
  const std::lock_guard lock(j.mutex);
  REQUIRE(j.lines.size() == 1);
  CHECK(said_in(j.lines[0]) == said{5344, {"127.0.0.1"}});
}

TEST_CASE("a rank of another job, or with another secret, finds that out by itself") {
  job j(2, {.join = scaled_ms(30)});
  for (const mac_key& other : {key_of_job("a secret", "other job"), key_of_job("another secret", "a job")}) {
    const std::string thrown =
        refusal_of([&] { join_coordinator("127.0.0.1", j.middle.port(), other, in(0.5)); });
    CHECK(thrown.starts_with("75: RC"));
    CHECK(said_in(thrown).id == 5325);
  }
  run_to_end(j);
}

TEST_CASE("a rank's first message counts once") {
  job j(2, {.join = scaled_ms(30)});
  const std::string recorded =
      frame_writer(opening_key(key_of_test)).encode(frame_kind::open, random_nonce());
  const socket_handle rank = connect_to("127.0.0.1", j.middle.port(), in(1));
  send_all(rank, recorded, in(1));
  CHECK(wait_for_bytes(rank, in(5)));
  CHECK(answer_to(j, recorded) == "");
  run_to_end(j);
}

TEST_CASE("frames of one connection are worth nothing on another one, nor in the other direction") {
  job j(2, {.join = scaled_ms(30)});
  coordinator_link a = j.link(), b = j.link();
  const std::string theirs = a.to_coordinator.encode(frame_kind::hello, pack(rank_of(1, 2)));
  send_all(b.socket, theirs, in(1));
  CHECK(is_closed(b.socket, 5));
  std::string answer;
  a.from_coordinator.add(theirs);
  CHECK_THROWS_AS(a.from_coordinator.next(), not_a_frame);
  run_to_end(j);
}

TEST_CASE("of clients that say nothing 16 stay, and ranks find their place all the same") {
  job j(2, {.join = scaled_ms(30)});
  std::vector<socket_handle> idle;
  for (int i = 0; i < 60; ++i) idle.push_back(connect_to("127.0.0.1", j.middle.port(), in(1)));
  run_to_end(j);
  const auto closed =
      std::count_if(idle.begin(), idle.end(), [](const socket_handle& s) { return is_closed(s, 0.01); });
  CHECK(closed >= 44);
  CHECK(closed <= 46);  // a joining rank may take the place of one for a moment
  CHECK(is_closed(idle.front(), 0.01));
  CHECK_FALSE(is_closed(idle.back(), 0.01));
}

TEST_CASE("a client that sends byte after byte is closed after its time, and one that sends much at once") {
  job j(2, {.join = scaled_ms(60)});
  const auto start = clock_of_test::now();
  const socket_handle slow = connect_to("127.0.0.1", j.middle.port(), in(1)),
                      much = connect_to("127.0.0.1", j.middle.port(), in(1));
  const std::string large = frame_writer(key_of_test).encode(frame_kind::open, std::string(16 << 20, 'x')),
                    bytes = frame_writer(key_of_test).encode(frame_kind::open, std::string(9000, 'x'));
  CHECK_FALSE(send_all(much, large, in(5)));
  std::size_t sent = 0;
  while (sent < bytes.size() && send_some(slow, std::string_view(bytes).substr(sent, 1)) == 1) {
    ++sent;
    std::this_thread::sleep_for(50ms);
  }
  CHECK(sent > 24);  // the connection stays open past a frame's header
  CHECK(sent < bytes.size());
  CHECK(seconds_since(start) > 4);
  CHECK(seconds_since(start) < scaled(9).count());
}

TEST_CASE("no frame of a rank makes the others wait for ever") {
  struct wrong {
    frame_kind kind;
    std::string body;
  };
  const auto number = [](std::uint64_t n) { return body_writer().add(n).take(); };
  const std::string part = body_writer().add("x").add("y").take();
  const wrong before_the_start[]{
      {frame_kind::ask_stop, number(15)}, {frame_kind::begun, number(1)}, {frame_kind::failed, number(70)},
      {frame_kind::gather, part},         {frame_kind::bye, ""},          {frame_kind::hello, ""},
      {frame_kind::stop, number(3)},      {frame_kind::verdict, ""}};
  for (const wrong& w : before_the_start) {
    CAPTURE(static_cast<int>(w.kind));
    job j(2, {.join = scaled_ms(30)});
    coordinator_link early = j.link();
    send(early, frame_kind::hello, pack(rank_of(1, 2)));
    send(early, w.kind, w.body);
    CHECK(is_closed(early.socket, 5));
    run_to_end(j);
  }
  const wrong in_a_run[]{{frame_kind::ask_stop, number(0)},
                         {frame_kind::ask_stop, number(1000)},
                         {frame_kind::begun, number(1)},
                         {frame_kind::hello, pack(rank_of(1, 2))},
                         {frame_kind::gather, part.substr(0, 9)},
                         {frame_kind::stop, number(3)},
                         {frame_kind::gathered, part}};
  for (const wrong& w : in_a_run) {
    CAPTURE(static_cast<int>(w.kind));
    job j(2);
    coordinator_link bad = j.link();
    send(bad, frame_kind::hello, pack(rank_of(1, 2)));
    const auto zero = j.join(0);
    send(bad, w.kind, w.body);
    const std::string thrown = refusal_of([&] {
      for (int step = 1; step < 1000; ++step) {
        if (zero->agreed_stop(step, 0) != 0) break;
        std::this_thread::sleep_for(10ms);
      }
    });
    CHECK(thrown.starts_with("77: RC5327: "));
    CHECK(said_in(thrown, 5342).id == 5342);
  }
}

TEST_CASE("ranks that do not hear of the last step end") {
  job j(2);
  coordinator_link mute = j.link();
  send(mute, frame_kind::hello, pack(rank_of(1, 2)));
  const auto zero = j.join(0);
  std::atomic<bool> over = false;
  std::thread lives([&] {
    while (!over) {
      send(mute, frame_kind::alive, body_writer().add(std::uint64_t{0}).take());
      std::this_thread::sleep_for(100ms);
    }
  });
  const std::string thrown = refusal_of([&] {
    for (int step = 1; step < 1000 && zero->agreed_stop(step, 15) == 0; ++step)
      std::this_thread::sleep_for(10ms);
  });
  over = true;
  lives.join();
  CHECK(thrown.starts_with("77: RC5362: "));
}

TEST_CASE("rank 0 says after three seconds for whom it waits, and at the end that they did not meet") {
  job j(4, {.join = scaled_ms(4)});
  const auto thrown = together(2, [&](int r) { j.join(2 * r); });
  for (const std::string& t : thrown) CHECK(t.starts_with("75: RC5348: "));
  const std::lock_guard lock(j.mutex);
  REQUIRE(j.lines.size() == 1);
  CHECK(said_in(j.lines[0]) == said{5363,
                                    {std::to_string(j.middle.port()), "ranks", "1 and 3", "4",
                                     std::to_string(whole_seconds(scaled(4)))}});
}

TEST_CASE("rank 0 listens at the addresses that a name has here, and nowhere else") {
  for (const char* host : {"127.0.0.1", "localhost", "0.0.0.0"})
    for (const bool for_others : {false, true}) {
      CAPTURE(host);
      const listening there = listen_at(host, 0, for_others, in(1));
      CHECK_FALSE(there.everywhere);
      for (const socket_handle& s : there.sockets) CHECK(is_loopback(local_address(s)));
      CHECK(refusal_of([&] { connect_to(host, port_of(there.sockets.front()), in(1)); }) == nothing);
    }
  CHECK(local_address(listen_at("127.0.1.1", 0, false, in(1)).sockets.front()) == "127.0.1.1");
}

TEST_CASE("a name that is the loopback interface here is of no use to other machines") {
  const std::string name = "0x7f000001";  // it resolves to 127.0.0.1, like the machine's own name on Debian
  const listening here = listen_at(name, 0, false, in(1)), far = listen_at(name, 0, true, in(1));
  CHECK_FALSE(here.everywhere);
  for (const socket_handle& s : here.sockets) CHECK(is_loopback(local_address(s)));
  CHECK(far.everywhere);
  CHECK(refusal_of([&] { connect_to("127.0.1.1", port_of(far.sockets.front()), in(1)); }) == nothing);
}

TEST_CASE("an address of another machine means the interface that reaches it") {
  listening there;
  // Without a network.
  if (refusal_of([&] { there = listen_at("192.0.2.1", 0, true, in(1)); }) != nothing) return;
  CHECK_FALSE(there.everywhere);
  REQUIRE(there.sockets.size() == 1);
  CHECK(local_address(there.sockets.front()) != "192.0.2.1");
  CHECK(local_address(there.sockets.front()) != "0.0.0.0");
}

TEST_CASE("a port that is taken, and a name that is unknown, are named") {
  const socket_handle taken = listen_on_loopback();
  const std::string text = refusal_of([&] { listen_at("127.0.0.1", port_of(taken), false, in(1)); });
  CHECK(text.starts_with("75: RC"));
  CHECK(said_in(text) == said{5335, {std::to_string(port_of(taken))}});
  int tries = 0;
  const std::string unknown = refusal_of(
      [&] { listen_at("no.such.host.invalid", 7, false, in(0.5), [&](const std::string&) { ++tries; }); });
  CHECK(unknown.starts_with("75: RC"));
  CHECK(said_in(unknown).id == 5336);
  CHECK(said_in(unknown).arguments[1] == "no.such.host.invalid");
  CHECK(tries >= 1);
}

TEST_CASE("the limit of open files is raised to the hard one, and a job that needs more is refused") {
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  rlimit low = before;
  low.rlim_cur = 200;
  setrlimit(RLIMIT_NOFILE, &low);
  raise_file_limit(2);
  rlimit after{};
  getrlimit(RLIMIT_NOFILE, &after);
  CHECK(after.rlim_cur == before.rlim_max);
  setrlimit(RLIMIT_NOFILE, &before);
  if (before.rlim_max > 2'000'000'000) return;
  const auto most = static_cast<int>(before.rlim_max);
  const std::string refused = refusal_of([&] { raise_file_limit(most); });
  CHECK(refused.starts_with("1: RC5367: "));
}

}  // namespace control_test
