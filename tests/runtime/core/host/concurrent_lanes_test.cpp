// SPDX-License-Identifier: Apache-2.0
// Actions on a second compute lane: they run concurrently with the rank's own, in order, and events order
// them like any lane.
#include "../../../slowness.hpp"
#include "plan.hpp"

#include <rankc/runtime/host/kernels.hpp>

#include <atomic>
#include <chrono>
#include <cmath>
#include <map>
#include <thread>

namespace beside_test {

using namespace rankc::test;

namespace {

plan overlapping(int pp, int dp, int tp) {
  plan p(pp, dp, tp);
  p.add_overlap();
  return p;
}

double& value(rank& r, int element) { return *r.at<double>(data<double>(element)); }

constexpr int size = 96;
at matrix(int i) { return data<double>(i * size * size); }

/// Returns true once `partners` threads have arrived, or false after five seconds: threads that run one after
/// another never meet.
class rendezvous {
 public:
  explicit rendezvous(int partners) : missing_(partners) {}
  bool met() {
    --missing_;
    const auto until = std::chrono::steady_clock::now() + rankc::test::scaled(5);
    while (missing_ > 0 && std::chrono::steady_clock::now() < until) std::this_thread::yield();
    return missing_ <= 0;
  }

 private:
  std::atomic<int> missing_;
};

// State that functions without captures share with their test; set before a step.
std::vector<rendezvous*> meetings;
std::vector<int> met_beside, wrong;

TEST_CASE(
    "what goes around a ring beside computation begins after what it follows, and is there where it is "
    "followed") {
  constexpr std::size_t count = 50000;
  for (const int ranks : {2, 3}) {
    plan p(1, ranks, 1);
    p.layouts[0].arena_bytes = 8 * 5 * count + 8192;
    std::vector<int> right(static_cast<std::size_t>(ranks), 0);
    train_body = [&](rank& r) {
      const at x{8192}, y = x + 8 * count, to = y + 8 * count, second = to + 8 * count,
                        own = second + 8 * count;
      const auto fill = [&](at where, double number) { std::fill_n(r.at<double>(where), count, number); };
      int& good = right[static_cast<std::size_t>(r.index)];
      for (int step = 0; step < 20; ++step) {
        fill(x, r.index + 100 * step);
        fill(y, -r.index);
        follow(r[reduce], r[compute]);
        shift<double>(r[reduce], over::dp, {step, "ring"}, to, second, x, y, count, count, ring_way::next);
        fill(own, step);  // during the shift
        follow(r[compute], r[reduce]);
        follow(r[compute], r[compute]);
        const double before = (r.index + ranks - 1) % ranks;
        good +=
            r.at<double>(to)[count - 1] == before + 100 * step && r.at<double>(second)[count - 1] == -before;
      }
    };
    p.install()->step(input(1));
    for (int good : right) CHECK(good == 20);
  }
}

}  // namespace

TEST_CASE("both threads of every rank are at work at once") {
  plan p = overlapping(2, 1, 1);
  rendezvous first(2), second(2);
  meetings = {&first, &second};
  met_beside.assign(2, 0);
  std::vector<int> met(2);
  train_body = [&](rank& r) {
    act(r[overlap], "1F0", [](const lane& on) { met_beside[on.of->index] = meetings[on.of->index]->met(); });
    begin(r[compute], "0B0");
    met[r.index] = meetings[r.index]->met();
  };
  p.install()->step(input(1));
  CHECK(met == std::vector<int>{1, 1});
  CHECK(met_beside == std::vector<int>{1, 1});
}

TEST_CASE("products on both threads at once are those of one thread, to the bit") {
  plan p = overlapping(1, 1, 2);
  p.layouts[0].arena_bytes = 4096 + std::size_t{8} * size * size * sizeof(double);
  wrong.assign(2, 0);
  train_body = [&](rank& r) {
    for (int i = 0; i < 3 * size * size; ++i) value(r, i) = std::sin(i + r.index);
    linear<double>(r[compute], matrix(3), matrix(0), matrix(1), size, size, size);
    linear<double>(r[compute], matrix(4), matrix(0), matrix(2), size, size, size);
    for (int i = 0; i < 20; ++i) {
      act(r[overlap], "1F0",
          [](const lane& on) { linear<double>(on, matrix(5), matrix(0), matrix(1), size, size, size); });
      begin(r[compute], "0F0");
      linear<double>(r[compute], matrix(6), matrix(0), matrix(2), size, size, size);
    }
    record(r[overlap], {0});
    wait(r[compute], {0});
    for (int i = 0; i < 2 * size * size; ++i)
      wrong[r.index] += value(r, 3 * size * size + i) != value(r, 5 * size * size + i);
  };
  p.install()->step(input(1));
  CHECK(wrong == std::vector<int>(2));
}

TEST_CASE("actions beside run in order, and events order them with the rank's own, both ways") {
  plan p = overlapping(1, 1, 2);
  wrong.assign(2, 0);
  train_body = [](rank& r) {
    const auto slow_add = [](const lane& on) {
      const double x = value(on, 1);
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      value(on, 1) = 2 * x + value(on, 0);
    };
    value(r, 1) = 0;
    for (int i = 0; i < 5; ++i) {
      value(r, 0) = i + 1;
      record(r[compute], {0});
      wait(r[overlap], {0});
      act(r[overlap], "1F0", slow_add);
      act(r[overlap], "1F1", slow_add);
      record(r[overlap], {1});
      wait(r[compute], {1});
    }
    double want = 0;
    for (int i = 0; i < 10; ++i) want = 2 * want + i / 2 + 1;
    wrong[r.index] += value(r, 1) != want;
  };
  const auto e = p.install();
  for (int step = 1; step <= 3; ++step) e->step(input(step));
  CHECK(wrong == std::vector<int>{0, 0});
}

TEST_CASE("a message goes to an action beside and comes from one, through events alone") {
  plan p = overlapping(3, 1, 1);
  wrong.assign(3, 0);
  train_body = [](rank& r) {
    // Each rank sends its number, adds one to the received number, and forwards that: two hops around the
    // ring.
    value(r, 0) = r.index;
    send(r[to_next], {0, "hop"}, data<double>(0), 8);
    receive(r[from_prev], {0, "hop"}, data<double>(1), 8);
    record(r[from_prev], {0});
    wait(r[overlap], {0});
    act(r[overlap], "F0", [](const lane& on) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      value(on, 2) = value(on, 1) + 1;
    });
    record(r[overlap], {1});
    wait(r[to_next], {1});
    send(r[to_next], {1, "hop"}, data<double>(2), 8);
    receive(r[from_prev], {1, "hop"}, data<double>(3), 8);
    record(r[from_prev], {2});
    wait(r[compute], {2});
    wrong[r.index] += value(r, 3) != (r.index + 1) % 3 + 1;
  };
  const auto e = p.install();
  for (int step = 1; step <= 20; ++step) e->step(input(step));
  CHECK(wrong == std::vector<int>(3));
}

TEST_CASE("collectives of both threads meet their own, in whatever order the threads come to them") {
  plan p = overlapping(1, 2, 3);
  wrong.assign(6, 0);
  train_body = [](rank& r) {
    for (int i = 0; i < 20; ++i) {
      act(r[overlap], "1F0", [](const lane& on) {
        value(on, 0) = 1 + on.of->row->tp;
        all_reduce<double>(on, over::tp, {0, "beside"}, data<double>(0), 1);
        wrong[on.of->index] += value(on, 0) != 6;
      });
      if ((r.index + i) % 2) std::this_thread::sleep_for(std::chrono::microseconds(200));
      value(r, 8) = 10 * (1 + r.row->tp);
      all_reduce<double>(r[compute], over::tp, {1, "own"}, data<double>(8), 1);
      all_reduce<double>(r[reduce], over::dp, {2, "gradients"}, data<double>(8), 1);
      record(r[reduce], {0});
      wait(r[compute], {0});
      if (value(r, 8) != 120) throw std::runtime_error("the sums of the rank's own thread are wrong");
    }
  };
  const auto e = p.install();
  for (int step = 1; step <= 5; ++step) e->step(input(step));
  CHECK(wrong == std::vector<int>(6));
}

TEST_CASE("a step ends after its last action beside, and takes more of them than a lane holds") {
  plan p = overlapping(1, 1, 1);
  constexpr int many = 3000;
  train_body = [](rank& r) {
    value(r, 0) = 0;
    for (int i = 0; i < many; ++i) act(r[overlap], "F0", [](const lane& on) { ++value(on, 0); });
    act(r[overlap], "F1", [](const lane& on) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      *on.at<double>(on.of->where->loss) = value(on, 0);
    });
  };
  evaluate_body = train_body;
  const auto e = p.install();
  for (int step = 1; step <= 2; ++step) {
    CHECK(e->step(input(step)).loss == many);
    CHECK(e->evaluate() == many);
  }
}

TEST_CASE("a failure beside names rank, step and action, and stops all") {
  plan p = overlapping(2, 1, 1);
  const failure f = failing_step(p, [](rank& r) {
    if (r.index == 1)
      act(r[overlap], "2F3", [](const lane&) { throw std::runtime_error("the disk is on fire"); });
    begin(r[compute], "1B0");
    receive(r[from_prev], {0, "never"}, data<double>(0), 8);
    record(r[from_prev], {0});
    wait(r[compute], {0});
  });
  CHECK(f.code == 70);
  check_says(f, "rank 1, step 1, 2F3", {5063, {"the disk is on fire"}});
}

TEST_CASE("what an action beside waits for is named in a deadlock") {
  plan p = overlapping(1, 1, 2);
  const failure f = failing_step(p, [](rank& r) {
    begin(r[compute], "1B0");
    if (r.index == 0)
      act(r[overlap], "2F3",
          [](const lane& on) { all_reduce<double>(on, over::tp, {4, "sum"}, data<double>(0), 1); });
    record(r[overlap], {0});
    wait(r[compute], {0});
    all_reduce<double>(r[compute], over::tp, {5, "other"}, data<double>(8), 1);
  });
  CHECK(f.code == 70);
  CHECK(
      said_in(f.what()) ==
      said{5054,
           {"rank 0, step 1, 1B0 waits on overlap for 2F3; "
            "rank 0, step 1, 2F3 waits on overlap for all_reduce \"sum\" (message 4, 8 bytes, f64, sum) of "
            "2F3: rank 1 has not posted it; "
            "rank 1, step 1, 1B0 waits on compute for all_reduce \"other\" (message 5, 8 bytes, f64, sum) of "
            "1B0: rank 0 has not posted it"}});
}

TEST_CASE("what the second thread does not have is refused") {
  const auto refused = [](void (*work)(const lane&)) {
    plan p = overlapping(2, 1, 2);
    return failing_step(p, [=](rank& r) {
      if (r.index == 0) act(r[overlap], "2F3", work);
    });
  };
  const auto check_says = [](const failure& f, const said& wanted) {
    rankc::test::check_says(f, "rank 0, step 1, 2F3", wanted);
  };
  check_says(refused([](const lane& on) { record(on, {0}); }), {5057, {"record", "overlap"}});
  check_says(refused([](const lane& on) { wait(on, {0}); }), {5057, {"wait", "overlap"}});
  check_says(refused([](const lane& on) { send((*on.of)[to_next], {0, "hop"}, {}, 8); }),
             {5057, {"hop", "overlap"}});
  check_says(refused([](const lane& on) { act(on, "2F4", [](const lane&) {}); }), {5057, {"2F4", "overlap"}});
  check_says(
      refused([](const lane& on) { all_reduce<double>((*on.of)[reduce], over::dp, {0, "sum"}, {}, 1); }),
      {5060, {"sum", "reduce", "overlap"}});
  check_says(
      refused([](const lane& on) { all_reduce<double>((*on.of)[compute], over::tp, {0, "sum"}, {}, 1); }),
      {5060, {"sum", "compute", "overlap"}});
  plan alone(1, 1, 1);
  CHECK(said_in(failing_step(alone, [](rank& r) { act(r[reduce], "2F3", [](const lane&) {}); }).what()) ==
        said{5061, {"2F3", "reduce"}});
}

TEST_CASE("a program of two lanes with one communicator is refused") {
  plan p = overlapping(1, 1, 2);
  p.links[1].back().communicator = p.links[1].front().communicator;
  try {
    p.install();
    FAIL("the program was not refused");
  } catch (const failure& f) {
    CHECK(f.code == 1);
    CHECK(said_of(f) == said{5041, {"test", "1", "tp of rank 0"}});
  }
}

TEST_CASE("a trace shows actions on the lane that they ran on, one beside the other") {
  plan p = overlapping(1, 1, 2);
  rendezvous all(4);
  meetings = {&all};
  train_body = [](rank& r) {
    act(r[overlap], "1F0", [](const lane&) {
      meetings[0]->met();
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    });
    act(r[overlap], "1F1", [](const lane&) {});
    begin(r[compute], "0B0");
    meetings[0]->met();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  };
  const auto e = p.install();
  std::vector<traced> times;
  e->traced_step(input(1), times);
  std::map<std::pair<int, std::string>, traced> did;
  for (const traced& t : times) did.emplace(std::pair{t.rank, t.name}, t);
  REQUIRE(times.size() == 6);
  for (std::size_t i = 0; i < 6; ++i)
    CHECK(times[i].name == std::vector<std::string>{"1F0", "1F1", "0B0"}[i % 3]);
  for (int r = 0; r < 2; ++r) {
    const traced own = did.at({r, "0B0"}), first = did.at({r, "1F0"}), then = did.at({r, "1F1"});
    CHECK(own.lane == compute);
    CHECK(first.lane == overlap);
    CHECK(then.lane == overlap);
    CHECK(own.begin < first.end);
    CHECK(first.begin < own.end);
    CHECK(first.begin < first.end);
    CHECK(first.end <= then.begin);
  }
}

}  // namespace beside_test
