// SPDX-License-Identifier: Apache-2.0
// A stage's GPU fails while the other stage waits to receive from it, or to send to it.
#include "expect.hpp"
#include "fault.hpp"

namespace rankc::runtime::cuda::test {
namespace {

void stage_0(rank& r) {
  begin(r[compute], "F0");
  receive(r[from_next], {0, "B0: stage 1 -> 0"}, gradients, parameters * sizeof(float));
  send(r[to_next], {1, "F0: stage 0 -> 1"}, weights, parameters * sizeof(float));
}
void stage_1(rank& r) {
  begin(r[compute], "F0");
  fault_if_asked(r);
  record(r[compute], {0});
  wait(r[to_prev], {0});
  wait(r[from_prev], {0});
  send(r[to_prev], {0, "B0: stage 1 -> 0"}, weights, parameters * sizeof(float));
  receive(r[from_prev], {1, "F0: stage 0 -> 1"}, gradients, parameters * sizeof(float));
}

TEST_CASE("a fault in a stage frees its neighbour") {
  tables t(2, 1);
  t.connect("forward", {0, 1}, {to_next, from_prev}, over::peer);
  t.connect("backward", {1, 0}, {to_prev, from_next}, over::peer);
  void (*const bodies[])(rank&) = {stage_0, stage_1};
  check_that_a_fault_ends_the_step(*install({.about = t.about, .train = bodies, .evaluate = bodies}));
}

}  // namespace
}  // namespace rankc::runtime::cuda::test
