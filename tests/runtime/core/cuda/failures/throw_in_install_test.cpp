// SPDX-License-Identifier: Apache-2.0
// A rank fails on the host while install runs the steps for a trial, and the other rank waits for it.
#include "../../../../slowness.hpp"
#include "expect.hpp"

namespace rankc::runtime::cuda::test {
namespace {

void stage_0(rank& r) {
  begin(r[compute], "F0");
  receive(r[from_next], {0, "B0: stage 1 -> 0"}, gradients, parameters * sizeof(float));
  send(r[to_next], {1, "F0: stage 0 -> 1"}, weights, parameters * sizeof(float));
}
void stage_1(rank& r) {
  begin(r[compute], "F0");
  if (!r.alone) throw failure::reported(70, "rank 1, install, F0: this stage fails on purpose");
  send(r[to_prev], {0, "B0: stage 1 -> 0"}, weights, parameters * sizeof(float));
  receive(r[from_prev], {1, "F0: stage 0 -> 1"}, gradients, parameters * sizeof(float));
}

TEST_CASE("a failure of one rank in install frees the other") {
  tables t(2, 1);
  t.connect("forward", {0, 1}, {to_next, from_prev}, over::peer);
  t.connect("backward", {1, 0}, {to_prev, from_next}, over::peer);
  void (*const bodies[])(rank&) = {stage_0, stage_1};
  const auto start = std::chrono::steady_clock::now();
  CHECK_THROWS_WITH_AS(install({.about = t.about, .train = bodies, .evaluate = bodies}),
                       "rank 1, install, F0: this stage fails on purpose", failure);
  CHECK(std::chrono::steady_clock::now() - start < rankc::test::scaled(30));
}

}  // namespace
}  // namespace rankc::runtime::cuda::test
