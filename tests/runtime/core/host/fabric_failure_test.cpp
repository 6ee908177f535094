// SPDX-License-Identifier: Apache-2.0
// What the fabric refuses, and that every refusal is one sentence with names in it and never a hang.
#include "plan.hpp"

#include <chrono>
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
  check_says(
      f, {"rank 0, step 1, 0F0: send \"F0: stage 0 to 1\" (message 3, 64 bytes)",
          "rank 1, step 1, 1F0: receive \"F1: stage 0 to 1\" (message 4, 128 bytes)", "communicator 0 to 1"});
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
    return f;
  };
  check_says(differ({4, "x"}, 64, false), {"message 3", "message 4"});
  check_says(differ({3, "y"}, 64, false), {"\"x\"", "\"y\""});
  check_says(differ({3, "x"}, 72, false), {"64 bytes", "72 bytes"});
  check_says(differ({3, "x"}, 64, true), {"from plans 42 and 43"});
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
  check_says(meet(sum, sum_f32), {"f64", "f32"});
  check_says(meet(sum, max), {"sum", "max"});
  check_says(meet(sum, gather), {"all_reduce", "all_gather"});
  check_says(meet(sum, later_first), {"\"x\"", "\"later\""});
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
  check_says(f,
             {"deadlock", "rank 0, step 1, 0F0 waits on from_prev for receive \"first\" (message 0, 8 bytes)",
              "rank 1, step 1, 1F0 waits on from_prev for receive \"first\" (message 1, 8 bytes)",
              "rank 1 has not posted it", "rank 0 has not posted it"});
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
  check_says(f, {"deadlock", "rank 0, step 1, F0 waits on from_prev for receive \"ring\" (message 5",
                 "rank 1 holds send \"ring\" (message 5, 8 bytes) back on to_next"});
}

TEST_CASE("collectives in another order on two communicators are a deadlock") {
  plan p(2, 1, 1);  // two communicators of the same two ranks
  p.connect("one", {0, 1}, compute, over::pp);
  p.connect("two", {0, 1}, compute, over::tied);
  const failure f = failing_step(p, [](rank& r) {
    all_reduce<double>(r[compute], r.index ? over::pp : over::tied, {r.index, "one"}, data<double>(0), 1);
    all_reduce<double>(r[compute], r.index ? over::tied : over::pp, {1 - r.index, "two"}, data<double>(0), 1);
  });
  check_says(f, {"deadlock", "\"one\" (message 0", "\"one\" (message 1"});
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
    check_says(f, {"deadlock", "rank 0, step 1, B0 waits on compute for all_reduce \"gradients\" (message 7",
                   "rank 1 has ended its step without it"});
  }
}

TEST_CASE("communication that nobody answers is an orphan at the end of the step") {
  plan p(2, 1, 1);
  const failure f = failing_step(p, [](rank& r) {
    begin(r[compute], "F0");
    if (r.index == 0) send(r[to_next], {9, "nobody takes this"}, data<double>(0), 8);
  });
  CHECK(f.code == 70);
  check_says(
      f, {"orphan", "rank 0, step 1, end of the step",
          "send \"nobody takes this\" (message 9, 8 bytes) of F0", "rank 1 has ended its step without it"});
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
    CHECK(f.what() == "rank " + std::to_string(thrower) + ", step 1, W3: the disk is on fire");
    for (int r = 0; r < 4; ++r) CHECK(codes[static_cast<std::size_t>(r)] == (r == thrower ? 0 : 77));
  }
}

TEST_CASE("a failure keeps its code, and the engine stays failed") {
  plan p(1, 1, 2);
  int started = 0;
  train_body = [&](rank& r) {
    if (r.index == 1) {
      ++started;
      throw failure::reported(65, "no such checkpoint");
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
      check_says(f, {"rank 1, step 1: no such checkpoint"});
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
  CHECK_THROWS_WITH_AS(e->step(input(2)),
                       doctest::Contains("event 4 is waited for before this step records it"), failure);
}

TEST_CASE("calls that the plan does not allow are refused") {
  const auto refused = [](void (*call)(rank&)) {
    plan p(2, 1, 1);
    return failing_step(p, [=](rank& r) { call(r); });
  };
  check_says(refused([](rank& r) { all_reduce<double>(r[compute], over::tied, {0, "t"}, {}, 1); }),
             {"\"t\" is over tied on lane compute, which has no such communicator"});
  check_says(refused([](rank& r) { send(r[from_prev], {0, "t"}, {}, 8); }),
             {"\"t\" goes the other way on lane from_prev"});
  check_says(refused([](rank& r) { receive(r[compute], {0, "t"}, {}, 8); }),
             {"\"t\" is over peer on lane compute"});
  check_says(refused([](rank& r) { wait(r[compute], {2}); }), {"event 2 is waited for before this step"});
  check_says(refused([](rank& r) { record(r[compute], {16}); }), {"event 16 is not one of the 16 events"});
}

}  // namespace fabric_failure_test
