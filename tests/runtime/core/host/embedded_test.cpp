// SPDX-License-Identifier: Apache-2.0
// Ranks in an application: their refusals, how a failure reaches all of them, and the state that they leave
// alone.
#include <rankc/runtime/host/embedded.hpp>

#include "plan.hpp"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <memory_resource>
#include <new>
#include <thread>

namespace embedded_test {

using namespace rankc::test;

namespace {

/// A memory resource without memory.
class no_memory final : public std::pmr::memory_resource {
  void* do_allocate(std::size_t, std::size_t) override { throw std::bad_alloc(); }
  void do_deallocate(void*, std::size_t, std::size_t) override { FAIL("nothing was given"); }
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }
};

void check_refused(const status& s, int code, const said& wanted) {
  CHECK(s.code == code);
  CHECK(said_in(s.text) == wanted);
}

std::ptrdiff_t count_own_threads() {
  const std::filesystem::directory_iterator all("/proc/self/task");
  return std::distance(begin(all), end(all));
}

std::vector<std::string> environment() {
  std::vector<std::string> all;
  for (char** e = environ; *e != nullptr; ++e) all.push_back(*e);
  return all;
}

}  // namespace

TEST_CASE("embed refuses what does not fit, in a sentence and without an exception") {
  plan two(2, 1, 1), overlapped(1, 1, 1);
  train_body = evaluate_body = [](rank&) {};
  embedded e;
  check_refused(e.write(region::weights, 0, {}), 1, {5003, {}});
  check_refused(embed(two.built(), {.rank = 0}, e), 1, {5044, {"test", "2"}});
  meeting_place place;
  REQUIRE(meet(two.built(), place).ok());
  check_refused(embed(two.built(), {.rank = 2, .others = &place}, e), 1, {5006, {"2", "2"}});
  no_memory none;
  check_refused(embed(two.built(), {.rank = 0, .memory = &none, .others = &place}, e), 70,
                {5023, {"1048640"}});
  overlapped.add_overlap();
  check_refused(embed(overlapped.built(), {}, e), 1, {5045, {"0", "test", "2"}});
  CHECK(e.inside() == nullptr);
}

TEST_CASE("what is not in the vocabulary, or of another size, is refused at the border") {
  plan p(1, 1, 1);
  p.layouts[0].reads_targets = true;
  train_body = evaluate_body = [](rank&) {};
  std::vector<std::string> log;
  embedded e;
  REQUIRE(embed(p.built(), {.log = [&](const char* line) { log.push_back(line); }}, e).ok());
  const std::vector<std::int32_t> good{0, 7, 3, 2}, high{0, 7, 8, 2}, low{-1, 0, 0, 0}, few{1, 2};
  CHECK(e.set_batch(0, good, good).ok());
  check_refused(e.set_batch(0, high, good), 1, {5004, {"2", "8", "7"}});
  check_refused(e.set_batch(1, good, low), 1,
                {5075,
                 {"0", "-1",
                  "a label is a token, 0 to 7; to leave labels out of the loss, give the plan's training an "
                  "ignored_label, as -100"}});
  check_refused(e.set_batch(0, few, good), 1, {5000, {"tokens", "2", "4"}});
  check_refused(e.set_batch(2, good, good), 1, {5010, {"0", "2", "1", "2"}});
  std::vector<double> values(100);
  CHECK(e.read(region::weights, 0, values).ok());
  check_refused(e.read(region::weights, 1, values), 1, {5009, {"0", "1", "101", "100"}});
  REQUIRE(log.size() == 6);
  CHECK(log[0] == "rank 0 of the plan test has taken 1048576 bytes");
  CHECK(said_in(log[1]) == said{5004, {"2", "8", "7"}});
}

TEST_CASE("nothing of the process is changed, and no thread is made") {
  plan p(1, 1, 1);
  train_body = [](rank& r) { *r.at<double>(r.where->loss) = r.input.lr; };
  evaluate_body = train_body;
  const auto before = environment();
  const std::ptrdiff_t threads = count_own_threads();
  std::atomic<std::ptrdiff_t> within = 0;
  p.layouts[0].reads_targets = true;
  embedded e;
  REQUIRE(embed(p.built(), {}, e).ok());
  train_body = [&](rank& r) {
    *r.at<double>(r.where->loss) = r.input.lr;
    *r.at<double>(r.where->norm) = 9;
    within = count_own_threads();
  };
  step_output out{};
  REQUIRE(e.step({.lr = 2.5, .weight_decay = 0, .clip = 0, .beta1 = 0, .beta2 = 0, .eps = 0, .step = 1}, out)
              .ok());
  CHECK(out.loss == 2.5);
  CHECK(out.grad_norm == 3);
  CHECK(within == threads);
  CHECK(environment() == before);
}

TEST_CASE("a rank waits for one that comes late, and the failure of one is told to all") {
  plan p(2, 1, 1);
  std::atomic<bool> fails = false;
  train_body = [&](rank& r) {
    begin(r[compute], r.index == 0 ? "0F0" : "1F0");
    if (r.index == 0) send(r[to_next], {3, "F0: stage 0 to 1"}, data<double>(0), 64);
    if (r.index == 1 && fails) throw std::runtime_error("of the test");
    if (r.index == 1) receive(r[from_prev], {3, "F0: stage 0 to 1"}, data<double>(0), 64);
  };
  const auto built = p.built();
  meeting_place place;
  REQUIRE(meet(built, place).ok());
  status ended[2][3];
  const auto one = [&](int index) {
    embedded e;
    REQUIRE(embed(built, {.rank = index, .others = &place}, e).ok());
    for (int step = 0; step < 3; ++step) {
      if (index == 1) std::this_thread::sleep_for(std::chrono::milliseconds(50));
      if (index == 1 && step == 1) fails = true;
      step_output out;
      ended[index][step] = e.step(
          {.lr = 0, .weight_decay = 0, .clip = 0, .beta1 = 0, .beta2 = 0, .eps = 0, .step = step + 1}, out);
    }
  };
  {
    std::jthread other([&] { one(1); });
    one(0);
  }
  for (int index : {0, 1}) {
    CHECK(ended[index][0].ok());
    for (int step : {1, 2}) {
      CHECK(std::string(ended[index][step].text).starts_with("rank 1, step 2, 1F0: RC"));
      check_refused(ended[index][step], 70, {5063, {"of the test"}});
    }
  }
}

}  // namespace embedded_test
