// SPDX-License-Identifier: Apache-2.0
// Two ranks on two GPUs: collectives, both directions of a pipeline edge, and a failure that must leave none
// waiting.
#include "tables.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <cmath>
#include <string>

namespace rankc::cuda::test {
namespace {

constexpr step_input input{
    .lr = 0, .weight_decay = 0, .clip = 0, .beta1 = 0, .beta2 = 0, .eps = 1, .step = 1};
constexpr std::size_t quarter = parameters / 4;

using body = void (*)(rank&);

/// From the weights a_r of rank r (f32): gradients = sum; first moment = (a_0's first half, a_1's first
/// half); second moment: its first half is this rank's half of the sum; its second half the maximum of the
/// last.
void exchange(rank& r) {
  constexpr std::size_t half = parameters / 2, half_bytes = half * sizeof(float);
  begin(r, "exchange");
  clear<float>(r, gradients, parameters);
  add<float>(r, gradients, gradients, weights, parameters);
  clear<float>(r, second_moment, parameters);
  add<float>(r, second_moment + half_bytes, second_moment + half_bytes, weights + half_bytes, half);
  record(r, stream::compute, {0});
  wait(r, stream::reduce, {0});
  all_reduce<float>(r, stream::reduce, role::dp, {0, "sum"}, gradients, parameters);
  all_gather<float>(r, stream::reduce, role::dp, {1, "gather"}, first_moment, weights, half);
  reduce_scatter<float>(r, stream::reduce, role::dp, {2, "scatter"}, second_moment, weights, half);
  all_reduce<float>(r, stream::reduce, role::dp, {3, "most"}, second_moment + half_bytes, half,
                    reduction::max);
}

std::vector<double> weights_of(int rank) {
  std::vector<double> w(parameters);
  for (int i = 0; i < parameters; ++i) w[i] = static_cast<float>(std::sin(i + 100.0 * rank));
  return w;
}

void check_region(engine& e, int rank, region which, const std::vector<double>& wanted) {
  std::vector<double> got(parameters);
  e.read(rank, which, 0, parameters, got.data());
  for (int i = 0; i < parameters; ++i) {
    CAPTURE(rank);
    CAPTURE(i);
    CHECK(got[i] == doctest::Approx(wanted[i]).epsilon(1e-6));
  }
}

TEST_CASE("collectives over two ranks, eagerly, captured and replayed") {
  tables t(1, 2);
  t.connect("dp", {0, 1}, {role::dp, role::dp});
  const body bodies[] = {exchange};
  const auto e = install({.about = t.about, .train = bodies, .evaluate = bodies});
  const auto a = weights_of(0), b = weights_of(1);
  const int half = parameters / 2;
  for (int rank = 0; rank < 2; ++rank)
    e->write(rank, region::weights, 0, parameters, (rank == 0 ? a : b).data());
  for (int time = 0; time < 3; ++time) {
    e->step(input);
    std::vector<double> sum(parameters), gathered(parameters);
    for (int i = 0; i < parameters; ++i) {
      sum[i] = a[i] + b[i];
      gathered[i] = i < half ? a[i] : b[i - half];
    }
    for (int rank = 0; rank < 2; ++rank) {
      check_region(*e, rank, region::gradients, sum);
      check_region(*e, rank, region::first_moment, gathered);
      std::vector<double> rest(parameters);
      for (int i = 0; i < half; ++i) {
        rest[i] = sum[i + rank * half];
        rest[i + half] = std::max(a[i + half], b[i + half]);
      }
      check_region(*e, rank, region::second_moment, rest);
    }
  }
}

/// Stage 0 sends its weights on, stage 1 returns them doubled, both at once with a second message behind the
/// first.
void stage_0(rank& r) {
  begin(r, "F0");
  record(r, stream::compute, {0});
  wait(r, stream::to_next, {0});
  wait(r, stream::from_next, {0});
  send(r, stream::to_next, {0, "F0: stage 0 -> 1"}, weights, parameters * sizeof(float));
  send(r, stream::to_next, {1, "F1: stage 0 -> 1"}, weights, quarter * sizeof(float));
  begin(r, "B0");
  receive(r, stream::from_next, {2, "B0: stage 1 -> 0"}, gradients, parameters * sizeof(float));
}
void stage_1(rank& r) {
  begin(r, "F0");
  record(r, stream::compute, {0});
  wait(r, stream::from_prev, {0});
  receive(r, stream::from_prev, {0, "F0: stage 0 -> 1"}, values, parameters * sizeof(float));
  receive(r, stream::from_prev, {1, "F1: stage 0 -> 1"}, first_moment, quarter * sizeof(float));
  record(r, stream::from_prev, {1});
  wait(r, stream::compute, {1});
  begin(r, "B0");
  add<float>(r, gradients, values, values, parameters);
  record(r, stream::compute, {2});
  wait(r, stream::to_prev, {2});
  send(r, stream::to_prev, {2, "B0: stage 1 -> 0"}, gradients, parameters * sizeof(float));
}

tables two_stages() {
  tables t(2, 1);
  t.connect("forward", {0, 1}, {role::to_next, role::from_prev});
  t.connect("backward", {1, 0}, {role::to_prev, role::from_next});
  return t;
}

TEST_CASE("a pipeline edge carries both directions, in order") {
  const tables t = two_stages();
  const body bodies[] = {stage_0, stage_1};
  const auto e = install({.about = t.about, .train = bodies, .evaluate = bodies});
  for (int time = 0; time < 3; ++time) {
    auto a = weights_of(time);
    e->write(0, region::weights, 0, parameters, a.data());
    e->step(input);
    std::vector<double> got(quarter);
    e->read(1, region::first_moment, 0, quarter, got.data());
    for (std::size_t i = 0; i < quarter; ++i) CHECK(got[i] == a[i]);
    for (double& x : a) x *= 2;
    check_region(*e, 0, region::gradients, a);
  }
}

void failing_stage_1(rank& r) {
  begin(r, "F0");
  throw failure(70, "rank 1, step 1, F0: this stage fails on purpose");
}

TEST_CASE("when one rank fails the other is not left waiting") {
  const tables t = two_stages();
  const body bodies[] = {stage_0, failing_stage_1};
  const auto e = install({.about = t.about, .train = bodies, .evaluate = bodies});
  const auto begin_at = std::chrono::steady_clock::now();
  CHECK_THROWS_WITH_AS(e->step(input), "rank 1, step 1, F0: this stage fails on purpose", failure);
  CHECK(std::chrono::steady_clock::now() - begin_at < std::chrono::seconds(30));
  CHECK_THROWS_AS(e->step(input), failure);
}

}  // namespace
}  // namespace rankc::cuda::test
