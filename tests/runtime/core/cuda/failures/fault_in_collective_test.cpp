// SPDX-License-Identifier: Apache-2.0
// A rank's GPU fails while the other waits for it in a collective.
#include "expect.hpp"
#include "fault.hpp"

namespace rankc::runtime::cuda::test {
namespace {

void reduce_gradients(rank& r) {
  begin(r[compute], "F0");
  if (r.index == 1) fault_if_asked(r);
  all_reduce<float>(r[compute], over::dp, {0, "gradients"}, gradients, parameters);
}

TEST_CASE("a fault before a collective frees the other rank") {
  tables t(1, 2);
  t.connect("dp", {0, 1}, {compute, compute}, over::dp);
  void (*const bodies[])(rank&) = {reduce_gradients};
  check_that_a_fault_ends_the_step(*install({.about = t.about, .train = bodies, .evaluate = bodies}));
}

}  // namespace
}  // namespace rankc::runtime::cuda::test
