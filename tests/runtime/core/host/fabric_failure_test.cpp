// SPDX-License-Identifier: Apache-2.0
// The fabric refuses wrong communications. Every refusal is one sentence that names the communication, and
// never a hang.
#include "plan.hpp"

#include <chrono>
#include <new>
#include <stdexcept>
#include <thread>

namespace fabric_failure_test {

using namespace rankc::test;

TEST_CASE("messages that do not match are refused by name") {
  plan p(2, 1, 1);
  const failure f = failing_step(p, [](rank& r) {
    begin(r[compute], r.index == 0 ? "0F0" : "1F0");
    if (r.index == 0) send(r[to_next], {3, "F0: stage 0 to 1"}, data<double>(0), 64);
    else receive(r[from_prev], {4, "F1: stage 0 to 1"}, data<double>(0), 128);
  });
  CHECK(f.code == 70);
  CHECK(said_in(f.what()) ==
        said{5052,
             {"0 to 1", "rank 0, step 1, 0F0", "send \"F0: stage 0 to 1\" (message 3, 64 bytes)",
              "rank 1, step 1, 1F0", "receive \"F1: stage 0 to 1\" (message 4, 128 bytes)"}});
}

TEST_CASE("each part of a header is compared: index, name, bytes, plan") {
  description other{};
  const auto differ = [&](message theirs, std::size_t bytes, bool other_plan) {
    plan p(2, 1, 1);
    const failure f = failing_step(p, [&](rank& r) {
      if (r.index == 0) return send(r[to_next], {3, "x"}, data<double>(0), 64);
      other = *r.about;
      other.plan_hash = 43;
      if (other_plan) r.about = &other;
      receive(r[from_prev], theirs, data<double>(0), bytes);
    });
    CHECK(f.code == 70);
    return said_in(f.what());
  };
  const auto meets = [](const std::string& received) {
    return said{5052,
                {"0 to 1", "rank 0, step 1", "send \"x\" (message 3, 64 bytes)", "rank 1, step 1", received}};
  };
  CHECK(differ({4, "x"}, 64, false) == meets("receive \"x\" (message 4, 64 bytes)"));
  CHECK(differ({3, "y"}, 64, false) == meets("receive \"y\" (message 3, 64 bytes)"));
  CHECK(differ({3, "x"}, 72, false) == meets("receive \"x\" (message 3, 72 bytes)"));
  CHECK(differ({3, "x"}, 64, true) ==
        said{5051,
             {"0 to 1", "rank 0, step 1", "send \"x\" (message 3, 64 bytes)", "0", "rank 1, step 1",
              "receive \"x\" (message 3, 64 bytes)", "43"}});
}

TEST_CASE("collectives must be alike in kind, type, reduction and order") {
  using body = void (*)(rank&);
  const auto meet = [](body first, body second) {
    plan p(1, 2, 1);
    return failing_step(p, [=](rank& r) { r.index == 0 ? first(r) : second(r); });
  };
  constexpr body sum = [](rank& r) {
    all_reduce<double>(r[compute], over::dp, {0, "x"}, data<double>(0), 4);
  };
  constexpr body sum_f32 = [](rank& r) {
    all_reduce<float>(r[compute], over::dp, {0, "x"}, data<float>(0), 8);
  };
  constexpr body max = [](rank& r) {
    all_reduce<double>(r[compute], over::dp, {0, "x"}, data<double>(0), 4, reduction::max);
  };
  constexpr body gather = [](rank& r) {
    all_gather<double>(r[compute], over::dp, {0, "x"}, data<double>(8), data<double>(0), 4);
  };
  constexpr body later_first = [](rank& r) {
    all_reduce<double>(r[compute], over::dp, {1, "later"}, data<double>(0), 4);
    all_reduce<double>(r[compute], over::dp, {0, "x"}, data<double>(0), 4);
  };
  const auto check_met = [](const failure& f, const std::string& theirs) {
    CHECK(said_in(f.what()) ==
          said{5052,
               {"dp on compute of rank 0", "rank 0, step 1",
                "all_reduce \"x\" (message 0, 32 bytes, f64, sum)", "rank 1, step 1", theirs}});
  };
  check_met(meet(sum, sum_f32), "all_reduce \"x\" (message 0, 32 bytes, f32, sum)");
  check_met(meet(sum, max), "all_reduce \"x\" (message 0, 32 bytes, f64, max)");
  check_met(meet(sum, gather), "all_gather \"x\" (message 0, 32 bytes, f64)");
  check_met(meet(sum, later_first), "all_reduce \"later\" (message 1, 32 bytes, f64, sum)");
}

TEST_CASE("a deadlock is named at once, with what each rank waits for") {
  plan p(2, 1, 1);
  const failure f = failing_step(p, [](rank& r) {
    begin(r[compute], r.index == 0 ? "0F0" : "1F0");
    receive(r[from_prev], {r.index, "first"}, data<double>(0), 8);
    record(r[from_prev], {0});
    wait(r[compute], {0});
    send(r[to_next], {1 - r.index, "then"}, data<double>(0), 8);
  });
  CHECK(f.code == 70);
  CHECK(
      said_in(f.what()) ==
      said{
          5054,
          {"rank 0, step 1, 0F0 waits on from_prev for receive \"first\" (message 0, 8 bytes) of 0F0: rank 1 "
           "has not posted it; rank 1, step 1, 1F0 waits on from_prev for receive \"first\" (message 1, 8 "
           "bytes) of 1F0: rank 0 has not posted it"}});
}

TEST_CASE("a deadlock through a wait between lanes names the communication behind it") {
  plan p(2, 1, 1);
  const failure f = failing_step(p, [](rank& r) {
    begin(r[compute], "F0");
    receive(r[from_prev], {5, "ring"}, data<double>(0), 8);
    record(r[from_prev], {0});
    wait(r[to_next], {0});
    send(r[to_next], {5, "ring"}, data<double>(0), 8);
    record(r[to_next], {1});
    wait(r[compute], {1});
  });
  CHECK(said_in(f.what()) ==
        said{5054,
             {"rank 0, step 1, F0 waits on from_prev for receive \"ring\" (message 5, 8 bytes) of F0: rank 1 "
              "holds "
              "send \"ring\" (message 5, 8 bytes) back on to_next; rank 1, step 1, F0 waits on from_prev for "
              "receive "
              "\"ring\" (message 5, 8 bytes) of F0: rank 0 holds send \"ring\" (message 5, 8 bytes) back on "
              "to_next"}});
}

TEST_CASE("collectives in another order on two communicators are a deadlock") {
  plan p(2, 1, 1);  // two communicators of the same two ranks
  p.connect("one", {0, 1}, compute, over::pp);
  p.connect("two", {0, 1}, compute, over::tied);
  const failure f = failing_step(p, [](rank& r) {
    all_reduce<double>(r[compute], r.index ? over::pp : over::tied, {r.index, "one"}, data<double>(0), 1);
    all_reduce<double>(r[compute], r.index ? over::tied : over::pp, {1 - r.index, "two"}, data<double>(0), 1);
  });
  CHECK(
      said_in(f.what()) ==
      said{5054,
           {"rank 0, step 1 waits on compute for all_reduce \"one\" (message 0, 8 bytes, f64, sum) of no "
            "action: "
            "rank 1 has not posted it; rank 1, step 1 waits on compute for all_reduce \"one\" (message 1, 8 "
            "bytes, f64, sum) of no action: rank 0 has not posted it"}});
}

TEST_CASE("a rank that ends while others wait for it is named, whether it ends first or last") {
  for (const int late : {0, 1}) {
    plan p(1, 3, 1);
    const failure f = failing_step(p, [=](rank& r) {
      begin(r[compute], "B0");
      if ((r.index == 1) == (late == 1)) std::this_thread::sleep_for(std::chrono::milliseconds(20));
      if (r.index != 1) all_reduce<double>(r[compute], over::dp, {7, "gradients"}, data<double>(0), 4);
    });
    CHECK(f.code == 70);
    CHECK(
        said_in(f.what()) ==
        said{5054,
             {"rank 0, step 1, B0 waits on compute for all_reduce \"gradients\" (message 7, 32 bytes, f64, "
              "sum) of "
              "B0: rank 1 has ended its step without it; rank 2, step 1, B0 waits on compute for all_reduce "
              "\"gradients\" (message 7, 32 bytes, f64, sum) of B0: rank 1 has ended its step without it"}});
  }
}

TEST_CASE("communication that nobody answers is an orphan at the end of the step") {
  plan p(2, 1, 1);
  const failure f = failing_step(p, [](rank& r) {
    begin(r[compute], "F0");
    if (r.index == 0) send(r[to_next], {9, "nobody takes this"}, data<double>(0), 8);
  });
  CHECK(f.code == 70);
  CHECK(said_in(f.what()) == said{5053,
                                  {"rank 0, step 1, end of the step waits on to_next for send \"nobody takes "
                                   "this\" (message 9, 8 bytes) "
                                   "of F0: rank 1 has ended its step without it"}});
}

TEST_CASE("a rank that throws is the cause; the others stop as victims, wherever they wait") {
  for (const int thrower : {0, 1, 2, 3}) {
    plan p(2, 2, 1);
    std::vector<int> codes(4);
    const failure f = failing_step(p, [&](rank& r) {
      begin(r[compute], "W3");
      if (r.index == thrower) throw std::runtime_error("the disk is on fire");
      try {
        if (r.index % 2) {
          all_reduce<double>(r[compute], over::dp, {0, "x"}, data<double>(0), 4);
        } else {
          receive(r[from_prev], {1, "y"}, data<double>(0), 8);
          record(r[from_prev], {0});
          wait(r[compute], {0});
        }
      } catch (const failure& stopped) {
        codes[static_cast<std::size_t>(r.index)] = stopped.code;
        throw;
      }
    });
    CHECK(f.code == 70);
    check_says(f, "rank " + std::to_string(thrower) + ", step 1, W3", {5063, {"the disk is on fire"}});
    for (int r = 0; r < 4; ++r) CHECK(codes[static_cast<std::size_t>(r)] == (r == thrower ? 0 : 77));
  }
}

TEST_CASE("a failure keeps its code, and the engine stays failed") {
  plan p(1, 1, 2);
  int started = 0;
  train_body = [&](rank& r) {
    if (r.index == 1) {
      ++started;
      throw failure(65, "RC9999: there is no checkpoint {}", 12);
    }
    all_reduce<double>(r[compute], over::tp, {0, "x"}, data<double>(0), 4);
  };
  const auto e = p.install();
  for (int step = 1; step <= 2; ++step) {
    try {
      e->step(input(step));
      FAIL("the step did not fail");
    } catch (const failure& f) {
      CHECK(f.code == 65);
      CHECK(f.what() == std::string("rank 1, step 1: RC9999: there is no checkpoint 12"));
    }
  }
  CHECK(started == 1);
}

TEST_CASE("an event of the step before does not count") {
  plan p(2, 1, 1);
  train_body = [](rank& r) {
    if (r.input.step == 1) record(r[reduce], {4});
    wait(r[compute], {4});
  };
  const auto e = p.install();
  e->step(input(1));
  try {
    e->step(input(2));
    FAIL("the step did not fail");
  } catch (const failure& f) {
    CHECK(said_in(f.what()) == said{5048, {"4"}});
  }
}

TEST_CASE("calls that the plan does not allow are refused") {
  const auto refused = [](void (*call)(rank&)) {
    plan p(2, 1, 1);
    return said_in(failing_step(p, [=](rank& r) { call(r); }).what());
  };
  CHECK(refused([](rank& r) { all_reduce<double>(r[compute], over::tied, {0, "t"}, {}, 1); }) ==
        said{5058, {"t", "tied", "compute"}});
  CHECK(refused([](rank& r) { send(r[from_prev], {0, "t"}, {}, 8); }) == said{5059, {"t", "from_prev"}});
  CHECK(refused([](rank& r) { receive(r[compute], {0, "t"}, {}, 8); }) ==
        said{5058, {"t", "peer", "compute"}});
  CHECK(refused([](rank& r) { wait(r[compute], {2}); }) == said{5048, {"2"}});
  CHECK(refused([](rank& r) { record(r[compute], {16}); }) == said{5047, {"16", "16"}});
}

namespace {

/// Other processes, to which nothing can be sent because there is no memory.
struct without_memory final : peers {
  struct wires final : transport {
    void move(std::uint64_t, std::span<const outgoing>, std::span<const incoming>) override {
      throw std::bad_alloc();
    }
    void stop() override {}
  };
  std::unique_ptr<transport> connect() override { return std::make_unique<wires>(); }
  void tell_failure(int code, const std::string& text) override { told = std::to_string(code) + ": " + text; }
  void on_failure(std::function<void(const std::string&)>) override {}
  progress_words& words() override { return own; }
  void on_look(std::function<rank_position()>) override {}

  progress_words own;
  std::string told;
};

}  // namespace

TEST_CASE("what ends the thread of a communicator ends the step, with its place") {
  plan p(1, 2, 1);
  train_body = [](rank& r) {
    begin(r[compute], "0B0");
    all_reduce<double>(r[reduce], over::dp, {0, "x"}, data<double>(0), 4);
  };
  const auto others = std::make_shared<without_memory>();
  const auto exchange = [](const std::string&, const std::string& mine) {
    return std::vector<std::string>{mine, mine};
  };
  const auto e = host::install(p.built(), {.rank = 0, .exchange = exchange, .others = others});
  CHECK_THROWS_AS(e->step(input(1)), failure);
  CHECK(others->told ==
        "70: rank 0, step 1, 0B0: all_reduce \"x\": RC5065: the communication ended: std::bad_alloc");
}

}  // namespace fabric_failure_test
