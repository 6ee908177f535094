// SPDX-License-Identifier: Apache-2.0
// The position of a rank, from the numbers that its lanes store. The test stores them here instead of a GPU.
#include "../../../../said.hpp"
#include "../../../../../runtime/core/cuda/progress/injected.hpp"
#include "../../../../../runtime/core/cuda/progress/marks.hpp"
#include "../tables.hpp"
#include "fake_cuda.hpp"

#include <rankc/runtime/cuda/context.hpp>

#include <doctest/doctest.h>

#include <cstdint>

namespace rankc::runtime::cuda::test {
namespace {

/// Two stages with one rank each.
struct stage : tables {
  stage() : tables(2, 1) {
    connect("forward", {0, 1}, {to_next, from_prev}, over::peer);
    connect("backward", {1, 0}, {to_prev, from_next}, over::peer);
    connect("pp", {0, 1}, {compute, compute}, over::pp);
    connect("tp", {0, 1}, {reduce, reduce}, over::tp);
  }
};

/// A step as in generated text; nothing is really sent.
void step_of(rank& r) {
  const lane &on = r[compute], &sends = r[to_next], &receives = r[from_next], &sums = r[reduce];
  begin(on, "0F0");
  record(on, {0});
  wait(sends, {0});
  send(sends, {0, "F0: stage 0 -> 1"}, values, 4);
  record(sends, {1});
  receive(receives, {1, "B0: stage 1 -> 0"}, values, 4);
  record(receives, {2});
  begin(on, "0B0");
  wait(on, {2});
  record(on, {3});
  wait(sums, {3});
  constexpr shard_range three[]{{0, 0, 4}, {8, 4, 4}, {16, 8, 4}};
  scatter_sums<float>(sums, over::tp, {2, "gradients"}, first_moment, gradients, three, &shard_range::kept);
  begin(on, "0STEP");
  all_reduce<float>(on, over::pp, {3, "norm"}, norm_at, 1);
}

struct watched {
  stage plan;
  context owner{0, plan.about, 0};
  marks place{owner.of()};
  std::uint32_t* stored = static_cast<std::uint32_t*>(last_pinned());

  watched() {
    owner.of().alone = true;
    owner.of().all_lanes[from_next].links[0].place = 1;  // this rank receives
    place.enqueue(0);
    step_of(owner.of());
    place.launch(0, 7);
  }
  /// The position after the lanes have stored these numbers.
  rank_position at(std::uint32_t computes, std::uint32_t sends, std::uint32_t receives, std::uint32_t sums) {
    stored[compute] = computes;
    stored[to_next] = sends;
    stored[from_next] = receives;
    stored[reduce] = sums;
    place.follow();
    return place.look();
  }
};

TEST_CASE("a rank computes, or waits for the communication at the end of what its lanes wait for") {
  watched w;
  CHECK(w.at(0, 0, 0, 0).text() == "in step 7, op 0");
  const rank_position forward = w.at(1, 0, 1, 0);  // the receive is posted early
  CHECK(forward.text() == "in step 7 at 0F0, op 1");
  CHECK_FALSE(forward.waits);
  const rank_position backward = w.at(3, 1, 1, 0);
  CHECK(backward.text() == "in step 7 at 0B0, op 2");
  REQUIRE(backward.waits);
  CHECK(backward.awaited == "\"B0: stage 1 -> 0\" (communicator backward of ranks 1 and 0) on from_next");
  CHECK(backward.with == std::vector<int>{1});
  CHECK(backward.communicator == 1);
  CHECK_FALSE(w.at(3, 2, 2, 0).waits);  // the message has arrived
  CHECK_FALSE(w.at(5, 2, 2, 0).waits);
}

TEST_CASE("a collective of a lane that computes holds up its action, until it is done") {
  watched w;
  const rank_position inside = w.at(7, 2, 2, 2);
  CHECK(inside.text() == "in step 7 at 0STEP, op 3");
  REQUIRE(inside.waits);
  CHECK(inside.awaited == "\"norm\" (communicator pp of ranks 0 and 1) on compute");
  const rank_position after = w.at(8, 2, 2, 2);
  CHECK_FALSE(after.waits);
  CHECK(after.text() == inside.text());
  CHECK(after.moved != inside.moved);
}

TEST_CASE("what a group holds is one communication, and what is done is counted by communicator and launch") {
  watched w;
  const auto done = [](const rank_position& s, int communicator) {
    for (const auto& [of, count] : s.carried)
      if (of == communicator) return static_cast<int>(count & 0xffffffff);
    return -1;
  };
  CHECK(done(w.at(5, 2, 2, 1), 3) == 0);
  const rank_position s = w.at(5, 2, 1, 2);
  CHECK(done(s, 3) == 1);
  CHECK(done(s, 0) == 1);
  CHECK(done(s, 1) == 0);
  CHECK(done(s, 2) == 0);
  w.place.finish();
  w.place.launch(0, 8);
  const rank_position later = w.at(1, 0, 0, 0);
  CHECK(done(later, 3) == 0);
  CHECK(later.carried[0].second > s.carried[0].second);
  CHECK(later.text() == "in step 8 at 0F0, op 1");
}

TEST_CASE("the actions and communications that are under way are named by lane, communicator and members") {
  watched w;
  CHECK(w.place.under_way() == "no action");
  w.at(1, 0, 1, 0);
  CHECK(w.place.under_way() ==
        "compute: 0F0; from_next: \"B0: stage 1 -> 0\" (communicator backward of ranks 1 and 0)");
  w.at(7, 2, 2, 2);
  CHECK(w.place.under_way() == "compute: \"norm\" (communicator pp of ranks 0 and 1)");
  w.at(8, 2, 2, 2);
  CHECK(w.place.under_way() == "compute: 0STEP");
  std::vector<int> many(10);
  CHECK(name_of({"dp", many}) == "communicator dp of ranks 0, 0, 0, 0, 0, 0, 0, 0 and 2 more");
  CHECK(name_of({"dp", std::span(many).first(1)}) == "communicator dp of ranks 0");
}

TEST_CASE("in the install a rank is in step 0, and waits for the collective that its GPU has begun") {
  watched w;
  w.place.finish();
  w.place.begin_phase("all together");
  const rank_position before = w.place.look();
  CHECK(before.in_step);
  CHECK(before.step == 0);
  CHECK(before.action == "all together");
  CHECK_FALSE(before.waits);
  w.place.enqueue(0);
  step_of(w.owner.of());
  w.stored[compute] = 7;
  CHECK_FALSE(w.place.look().waits);  // calls are still being enqueued
  w.place.run_enqueued();
  w.stored[to_next] = w.stored[from_next] = w.stored[reduce] = 2;
  const rank_position inside = w.place.look();
  REQUIRE(inside.waits);
  CHECK(inside.awaited == "\"norm\" (communicator pp of ranks 0 and 1) on compute");
  CHECK(inside.with == std::vector<int>{1});
  CHECK(inside.moved != before.moved);
  w.place.finish();
  CHECK_FALSE(w.place.look().in_step);
}

TEST_CASE("a fault on purpose that is the host's alone is refused") {
  injection fault;
  fault.what = injection::fault::nan;
  CHECK(rankc::test::said_by([&] { injected{fault}; }) == rankc::test::said{5138, {}});
}

}  // namespace
}  // namespace rankc::runtime::cuda::test
