// SPDX-License-Identifier: Apache-2.0
// A timed step of one rank: its content, and that it computes the results of an untimed step.
#include "../tables.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace rankc::runtime::cuda::test {
namespace {

constexpr message reduced{0, "gradients"};

/// A few hundred microseconds of kernels that leave the weights in `values`.
void work(rank& r) {
  for (int i = 0; i < 300; ++i) add<float>(r[compute], values, weights, first_moment, parameters);
}

/// A reduction overlaps with 0B0, which waits for it halfway. The update begins by waiting for another one.
void timed_step(rank& r) {
  begin(r[compute], "0F0");
  work(r);
  add<float>(r[compute], loss_at, weights, weights, 1);
  add<float>(r[compute], gradients, weights, weights, parameters);
  record(r[compute], {0});
  wait(r[reduce], {0});
  all_reduce<float>(r[reduce], over::dp, reduced, gradients, parameters);
  record(r[reduce], {1});
  begin(r[compute], "0B0");
  work(r);
  wait(r[compute], {1});
  work(r);
  record(r[compute], {2});
  wait(r[reduce], {2});
  all_reduce<float>(r[reduce], over::dp, {1, "again"}, gradients, parameters);
  record(r[reduce], {3});
  begin(r[compute], "update");
  wait(r[compute], {3});
  all_reduce<float>(r[compute], over::dp, {2, "inside"}, loss_at, 1);
  add<float>(r[compute], norm_at, gradients, gradients, 1);
  add<float>(r[compute], weights, weights, gradients, parameters);
}

step_input input(int step) {
  return {.lr = 0.01, .weight_decay = 0.1, .clip = 1, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .step = step};
}

TEST_CASE("a timed step names what was done, in order, and changes no bit of what it computes") {
  tables t(1, 1);
  t.connect("dp", {0}, {reduce}, over::dp);
  t.connect("dp on compute", {0}, {compute}, over::dp);
  void (*const body[])(rank&) = {timed_step};
  const auto timed = install({.about = t.about, .train = body, .evaluate = body}),
             plain = install({.about = t.about, .train = body, .evaluate = body});
  std::vector<double> w(parameters), other(parameters);
  for (int i = 0; i < parameters; ++i) w[static_cast<std::size_t>(i)] = 0.01 * (i + 1);
  for (auto* e : {timed.get(), plain.get()}) e->write(0, region::weights, 0, parameters, w.data());
  for (int step = 1; step <= 6; ++step) {
    CAPTURE(step);
    std::vector<traced> did;
    const step_output expected = plain->step(input(step));
    const step_output out = step % 2 == 1 ? timed->traced_step(input(step), did) : timed->step(input(step));
    CHECK(out.loss == expected.loss);
    CHECK(out.grad_norm == expected.grad_norm);
    timed->read(0, region::weights, 0, parameters, w.data());
    plain->read(0, region::weights, 0, parameters, other.data());
    CHECK(w == other);
    if (step % 2 == 0) continue;
    REQUIRE(did.size() == 5);
    const std::vector<std::string> names{"0F0", "gradients", "0B0", "again", "update"};
    const std::vector<int> lanes{compute, reduce, compute, reduce, compute};
    for (std::size_t i = 0; i < did.size(); ++i) {
      CAPTURE(i);
      CHECK(did[i].name == names[i]);
      CHECK(did[i].lane == lanes[i]);
      CHECK(did[i].rank == 0);
      CHECK(did[i].begin >= 0);
      CHECK(did[i].end >= did[i].begin);
      CHECK(did[i].end < 1e6);
    }
    const traced &forward = did[0], &first = did[1], &backward = did[2], &second = did[3], &update = did[4];
    CHECK(forward.end - forward.begin > 100);
    CHECK(backward.end - backward.begin > 200);
    CHECK(backward.begin >= forward.end);
    CHECK(backward.begin - forward.end < 20);  // the wait halfway does not move its beginning
    CHECK(first.begin > forward.begin + 100);
    CHECK(first.end < backward.end);
    CHECK(second.begin > backward.begin + 200);
    CHECK(update.begin >= second.end);
    CHECK(update.begin >= backward.end);
  }
}

}  // namespace
}  // namespace rankc::runtime::cuda::test
