// SPDX-License-Identifier: Apache-2.0
// A timed step of two GPUs: both ends of every message, and the wait for it, in the times of both ranks.
#include "../regions.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace rankc::runtime::cuda::test {
namespace {

constexpr std::size_t count = 1 << 20;

/// Takes about a millisecond, much longer than the messages.
void work(rank& r) {
  for (int i = 0; i < 300; ++i)
    add<float>(r[compute], r.where->second_moment, r.where->weights, r.where->weights, count);
}

/// Stage 0 sends its weights, and stage 1 returns twice as much.
void first_stage(rank& r) {
  const layout& l = *r.where;
  begin(r[compute], "0F0");
  work(r);
  record(r[compute], {0});
  wait(r[to_next], {0});
  send(r[to_next], {0, "F0: stage 0 -> 1"}, l.weights, count * sizeof(float));
  receive(r[from_next], {1, "B0: stage 1 -> 0"}, l.gradients, count * sizeof(float));
  record(r[from_next], {1});
  begin(r[compute], "0B0");
  wait(r[compute], {1});
  add<float>(r[compute], l.weights, l.weights, l.gradients, count);
}
void last_stage(rank& r) {
  const layout& l = *r.where;
  receive(r[from_prev], {0, "F0: stage 0 -> 1"}, l.weights, count * sizeof(float));
  record(r[from_prev], {0});
  begin(r[compute], "1F0");
  wait(r[compute], {0});
  work(r);
  begin(r[compute], "1B0");
  work(r);
  add<float>(r[compute], l.gradients, l.weights, l.weights, count);
  record(r[compute], {1});
  wait(r[to_prev], {1});
  send(r[to_prev], {1, "B0: stage 1 -> 0"}, l.gradients, count * sizeof(float));
}

const traced& find(const std::vector<traced>& did, int rank, const std::string& name) {
  const traced* found = nullptr;
  for (const traced& e : did)
    if (e.rank == rank && e.name == name) {
      REQUIRE(found == nullptr);
      found = &e;
    }
  CAPTURE(name);
  REQUIRE(found != nullptr);
  return *found;
}

void trace_both(bool maps_peers) {
  CAPTURE(maps_peers);
  tables t(2, 1);
  t.connect("forward", {0, 1}, {to_next, from_prev}, over::peer);
  t.connect("backward", {1, 0}, {to_prev, from_next}, over::peer);
  enlarge(t, count);
  void (*const bodies[])(rank&) = {first_stage, last_stage};
  const placement way{.rank = -1, .device = 0, .maps_peers = maps_peers};
  const auto e = install({.about = t.about, .train = bodies, .evaluate = bodies}, way);
  std::vector<double> values(count, 1.0);
  e->write(0, region::weights, 0, count, values.data());
  double expected = 1;
  for (int step = 1; step <= 4; ++step) {
    CAPTURE(step);
    const step_input in{
        .lr = 0, .weight_decay = 0, .clip = 0, .beta1 = 0, .beta2 = 0, .eps = 1, .step = step};
    std::vector<traced> did;
    if (step % 2 == 0) e->traced_step(in, did);
    else e->step(in);
    expected *= 3;  // w + 2 w
    e->read(0, region::weights, 0, count, values.data());
    CHECK(values == std::vector<double>(count, expected));
    if (step % 2 == 1) continue;
    REQUIRE(did.size() == 8);
    for (const traced& d : did) {
      CAPTURE(std::string(d.name));
      CHECK(d.begin >= 0);
      CHECK(d.end >= d.begin);
      CHECK(d.end < 1e6);
    }
    const traced &f0 = find(did, 0, "0F0"), &b0 = find(did, 0, "0B0"), &f1 = find(did, 1, "1F0"),
                 &b1 = find(did, 1, "1B0");
    const traced &sent = find(did, 0, "F0: stage 0 -> 1"), &came = find(did, 0, "B0: stage 1 -> 0");
    const traced &got = find(did, 1, "F0: stage 0 -> 1"), &gave = find(did, 1, "B0: stage 1 -> 0");
    CHECK(sent.lane == to_next);
    CHECK(got.lane == from_prev);
    CHECK(gave.lane == to_prev);
    CHECK(came.lane == from_next);
    CHECK(sent.begin >= f0.end - 20);
    CHECK(b0.begin >= came.end);
    CHECK(f1.begin >= got.end);
    CHECK(b1.begin >= f1.end);
    CHECK(gave.begin >= b1.end - 20);
    // The round trip contains all of stage 1's work, although the two clocks need not agree.
    CHECK(came.end - sent.begin > (f1.end - f1.begin) + (b1.end - b1.begin));
  }
}

TEST_CASE("both ranks tell of every message, by copy engines and by NCCL") {
  for (const bool maps_peers : {true, false}) trace_both(maps_peers);
}

}  // namespace
}  // namespace rankc::runtime::cuda::test
