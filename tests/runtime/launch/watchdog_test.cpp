// SPDX-License-Identifier: Apache-2.0
#include <rankc/launch/watchdog.hpp>

#include "../../said.hpp"
#include "../../slowness.hpp"
#include "../trainer/fake_engine.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <future>
#include <utility>

using namespace rankc::runtime;
using namespace std::chrono_literals;

namespace {

/// Two ranks in step 4: rank 0 has done its part, and rank 1 makes no progress. `was_seen`: the watchdog has
/// seen them in step 3.
class stuck_engine : public fake_engine {
 public:
  stuck_engine(const fake_program& p, bool was_seen) : fake_engine(p), was_seen_(was_seen) {}
  std::vector<std::pair<int, rank_position>> look() override {
    rank_position done, stuck;
    done.step = stuck.step = std::exchange(was_seen_, false) ? 3 : 4;
    stuck.in_step = true;
    stuck.calls = 57;
    stuck.action = "1B3";
    done.moved = stuck.moved = {static_cast<std::uint64_t>(stuck.step)};
    return {{0, done}, {1, stuck}};
  }

 private:
  bool was_seen_;
};

/// The watchdog's text, if it comes within some time.
std::string text_of(bool was_seen, const limits& times, double patience) {
  const fake_program two(2, 1, 1);
  stuck_engine e(two, was_seen);
  std::promise<std::string> said;
  auto text = said.get_future();
  const watchdog looks_on(e, times, [&](const std::string& what) { said.set_value(what); });
  return text.wait_for(rankc::test::scaled(patience)) == std::future_status::ready ? text.get() : "";
}

}  // namespace

TEST_CASE("a rank that does not get on is named once the limit of a step is over") {
  const std::string text = text_of(true, {.step = 100ms}, 3);
  CHECK(text.starts_with("RC5354: "));
  CHECK(rankc::test::said_in(text, 5353) == rankc::test::said{5353, {"rank 1", "in step 4 at 1B3, op 57"}});
}

TEST_CASE("an exception in the watchdog's thread ends the run with a sentence") {
  class unseen : public fake_engine {
   public:
    using fake_engine::fake_engine;
    std::vector<std::pair<int, rank_position>> look() override { throw std::bad_alloc(); }
  };
  const fake_program two(2, 1, 1);
  unseen e(two);
  std::promise<std::string> said;
  const watchdog looks_on(e, {}, [&](const std::string& text) { said.set_value(text); });
  CHECK(rankc::test::said_in(said.get_future().get()) == rankc::test::said{6322, {"std::bad_alloc"}});
}

TEST_CASE("in the first step the limit is that of exchanges, and after that another") {
  CHECK(text_of(false, {.exchange = 100ms}, 3) != "");
  CHECK(text_of(true, {.exchange = 100ms}, 1.2) == "");
}
