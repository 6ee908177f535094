// SPDX-License-Identifier: Apache-2.0
// Complete searches at compile time. A run gives the same bits.
#include <doctest/doctest.h>

#include <bit>
#include <cstdint>

#include "oracle.hpp"

using namespace oracle;

namespace {

/// All results of a search as one constant.
struct findings {
  int candidates = 0, feasible = 0;
  std::array<double, 8> numbers = {};
  std::array<ranked_plan, 10> top = {};
};

constexpr findings find(const problem& q) {
  const search_result r = search(q);
  findings f{
      r.candidates,
      r.feasible,
      {r.sum_t, r.sum_mem, r.sum_t_feasible, r.sum_mem_feasible, r.min_t, r.max_t, r.min_mem, r.max_mem}};
  for (std::size_t i = 0; i < r.top.size(); ++i) f.top[i] = r.top[i];
  return f;
}

constexpr problem of_1024(strategy by) { return {{gpt3_1T, b200.with_domain(8)}, by, 1024, 4096}; }

// The numbers of candidates and the best plans, as the Python original computes them.
constexpr findings in_1d = find(of_1024(strategy::tp1d));
static_assert(in_1d.candidates == 2554);
static_assert(in_1d.top[0].plan == plan{.dp = 4, .tp1 = 2, .pp = 128, .nv_tp1 = 2, .nv_dp = 2, .nv_pp = 2});
static_assert(in_1d.top[0].t > 30.129432902271 && in_1d.top[0].t < 30.129432902272);

constexpr findings in_2d = find(of_1024(strategy::tp2d));
static_assert(in_2d.candidates == 51992);
static_assert(in_2d.top[0].plan == plan{.dp = 2, .tp1 = 4, .pp = 128, .nb = 16, .nv_tp1 = 4, .nv_pp = 2});

constexpr findings in_seqp = find(of_1024(strategy::seqp));
static_assert(in_seqp.candidates == 18114);
static_assert(in_seqp.top[0].plan ==
              plan{.dp = 2, .tp1 = 2, .tp2 = 2, .pp = 128, .nv_tp1 = 2, .nv_tp2 = 2, .nv_pp = 2});

// The check of a user whose plan shall be the fastest one.
constexpr problem small{
    {{.l = 2048, .e = 2048, .h = 16, .depth = 24}, h200.with_domain(8)}, strategy::tp1d, 8, 512};
static_assert(cost_of_step(small.on, small.by, fastest(small).plan, small.global_batch).t ==
              fastest(small).t);
static_assert(fastest({{gpt3, a100}, strategy::tp1d, 8, 2048}).t == std::numeric_limits<double>::infinity(),
              "no plan fits");

std::uint64_t bits(double x) { return std::bit_cast<std::uint64_t>(x); }

void check_same_bits(const findings& compiled, const findings& run) {
  CHECK(run.candidates == compiled.candidates);
  CHECK(run.feasible == compiled.feasible);
  for (std::size_t i = 0; i < run.numbers.size(); ++i)
    CHECK(bits(run.numbers[i]) == bits(compiled.numbers[i]));
  for (std::size_t i = 0; i < run.top.size(); ++i) {
    CHECK(run.top[i].plan == compiled.top[i].plan);
    CHECK(bits(run.top[i].t) == bits(compiled.top[i].t));
  }
}

}  // namespace

TEST_CASE("a run has the bits of the constant expression") {
  volatile int gpus = 1024;  // volatile, so that the search runs at run time
  const auto run = [&](strategy by) {
    problem q = of_1024(by);
    q.gpus = gpus;
    return find(q);
  };
  check_same_bits(in_1d, run(strategy::tp1d));
  check_same_bits(in_2d, run(strategy::tp2d));
  check_same_bits(in_seqp, run(strategy::seqp));
}
