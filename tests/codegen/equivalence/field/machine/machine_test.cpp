// SPDX-License-Identifier: Apache-2.0
// Lowered programs of tiny plans end in the state of the model on one device, over the field and in f64.
#include <doctest/doctest.h>

#include "../../../../some_of.hpp"
#include "execution.hpp"
#include "../plans/plans.hpp"

namespace machine_test {

using namespace field;
using rankc::codegen::dtype;
using rankc::codegen::target;

namespace {

/// Returns: the number of programs that were run.
int expect_equal(const rankc::plan_data& p) {
  CAPTURE(p.name);
  REQUIRE(accepts(p.diagnostics));
  int programs = 0;
  for (const auto& [type, to] : {std::pair{dtype::f64, target::host}, {dtype::bf16, target::cuda}})
    for (const subject& s : subjects_of(p, type, to)) {
      const auto seed = static_cast<unsigned>(programs);
      const execution::outcome exact = execution::over_field(s.model)->run(s.program, seed),
                               in_f64 = execution::in_f64(s.model)->run(s.program, seed);
      CHECK_MESSAGE(exact.equal, s.name << ": " << exact.difference);
      CHECK_MESSAGE(in_f64.equal, s.name << " in f64: " << in_f64.difference);
      ++programs;
    }
  return programs;
}

}  // namespace

TEST_CASE("tiny plans of every schedule and axis: programs leave what the model does") {
  int programs = 0;
  for (const rankc::plan_data& p : rankc::test::some_of(tiny_plans())) programs += expect_equal(p);
  CHECK(programs == 4 * rankc::test::some_of(121));
}

TEST_CASE("labels of which some are ignored: programs leave what the model does") {
  int programs = 0;
  for (const rankc::plan_data& p : rankc::test::some_of(masked_plans())) programs += expect_equal(p);
  CHECK(programs > 12);
}

TEST_CASE("labels with weights: programs leave what the model does") {
  int programs = 0;
  for (const rankc::plan_data& p : rankc::test::some_of(weighted_plans())) programs += expect_equal(p);
  CHECK(programs > 8);
}

TEST_CASE("attention with windows, softcaps, scales and sinks: programs leave what the model does") {
  int programs = 0;
  for (const rankc::plan_data& p : rankc::test::some_of(windowed_plans())) programs += expect_equal(p);
  CHECK(programs > 12);
}

TEST_CASE(
    "experts on ranks of their own, losses of routers, and their biases: programs leave what the model "
    "does") {
  int programs = 0, all = 0, taken = 0;
  for (const auto& plans : {spread_plans(), apart_plans(), balanced_plans(), biased_plans()}) {
    all += static_cast<int>(plans.size());
    for (const rankc::plan_data& p : rankc::test::some_of(plans)) {
      programs += expect_equal(p);
      ++taken;
    }
  }
  CHECK(all == 49);
  CHECK(programs == 4 * taken);
}

TEST_CASE("drawn plans: programs leave what the model does") {
  int programs = 0;
  for (const rankc::plan_data& p : drawn_plans(7, rankc::test::some_of(60), 8)) programs += expect_equal(p);
  CHECK(programs > rankc::test::some_of(60));
}

}  // namespace machine_test
