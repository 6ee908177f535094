// SPDX-License-Identifier: Apache-2.0
// Nothing is written without a proof: each check of the gate refuses the faults that it is meant for.
#include <doctest/doctest.h>

#include <rankc/codegen/gate.hpp>
#include <rankc/codegen/text_template.hpp>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "../said.hpp"
#include "plans.hpp"

namespace gate_test {

using namespace rankc::codegen;
using rankc::test::said;
using rankc::test::said_in;

namespace {

rankc::plan_data small_plan() {
  return programs::make({"tiny_gpt2", "gate", programs::order::one_f_one_b, 1, 2, 2, 3});
}

/// The text of the exception for a program that is too large.
std::string size_refusal_of(const lowered& l) {
  try {
    check_or_throw(l);
  } catch (const std::runtime_error& e) {
    return e.what();
  }
  return "nothing was thrown";
}

said proof_of(const lowered& l) {
  return rankc::test::said_by([&] { check_or_throw(l); });
}

/// The reasons of the exception for a program that is not sound.
std::string reasons_of(const lowered& l) {
  const said s = proof_of(l);
  CHECK(s.id == 7903);
  return s.arguments.empty() ? "" : s.arguments[0];
}

item& first_of(std::vector<item>& items, item_kind what) {
  return *std::find_if(items.begin(), items.end(), [&](const item& i) { return i.what == what; });
}

}  // namespace

TEST_CASE("a program that misses an event or a message is refused, in training and in evaluation") {
  const rankc::plan_data plan = small_plan();
  const lowered sound = lower(plan, dtype::f32);
  REQUIRE(proof_of(sound) == said{});
  for (const auto items : {&pipeline_rank::train, &pipeline_rank::evaluate}) {
    CAPTURE(items == &pipeline_rank::train);
    lowered race = sound;
    for (item& i : (race.ranks[0].*items).items) i.waits.clear();
    CHECK(said_in(reasons_of(race), 7069).arguments.at(0) == "0");
    lowered mismatch = sound;
    item& sent = first_of((mismatch.ranks[0].*items).items, item_kind::send);
    sent.name = "another message";
    CHECK(said_in(reasons_of(mismatch), 7060) ==
          said{7060,
               {"0", "another message", "8", "5120", "F0: stage 0 -> 1", "8", "5120", "2",
                "activations 0 -> 1 at dp 0 tp 0"}});
  }
}

TEST_CASE("a program that is sound and computes another model is refused") {
  rankc::plan_data plan = small_plan();
  const lowered l = lower(plan, dtype::f32);
  REQUIRE(proof_of(l) == said{});
  SUBCASE("twice the loss") {
    plan.on_one_device.back().ops[plan.on_one_device.back().forward_ops - 1].with.factor *= 2;
  }
  SUBCASE("a layer less") { --plan.runs[1].count; }
  SUBCASE("a frozen parameter") { plan.on_one_device[1].weights[0].trainable = false; }
  const said refused = proof_of(l);
  CHECK(refused.id == 7904);
  REQUIRE(refused.arguments.size() == 1);
  CHECK(refused.arguments[0] != "");
}

TEST_CASE("a program with an op that has no facts passes, and the gate says that it is not compared") {
  rankc::plan_data plan = small_plan();
  const lowered l = lower(plan, dtype::f32);
  CHECK(check_or_throw(l).not_compared == "");
  rankc::op& first = plan.on_one_device[1].ops[0];
  rankc::op_row own = *first.kind;
  own.name = "an_op_of_the_users";
  own.header = "users.hpp";
  own.dual = nullptr;
  first.kind = &own;
  CHECK(said_in(check_or_throw(l).not_compared) == said{7745, {"an_op_of_the_users", "it has no dual"}});
}

TEST_CASE("RC401: every rank must fit, to the byte") {
  rankc::plan_data plan = small_plan();
  for (const target to : {target::host, target::cuda}) {
    const lowered l = lower(plan, dtype::f32, to);
    REQUIRE(l.ranks.size() == 2);
    std::vector<std::size_t> needed;
    for (const pipeline_rank& r : l.ranks) needed.push_back(r.arena.bytes + bytes_beside_arena(l, r));
    const bool second = needed[1] > needed[0];
    const std::size_t most = needed[second];
    REQUIRE(most > needed[!second]);
    const auto refusal = [&](std::size_t memory) {
      plan.machines.memory = static_cast<long long>(memory);
      return size_refusal_of(lower(plan, dtype::f32, to));
    };
    CHECK(refusal(most) == "nothing was thrown");
    CHECK(refusal(most - 1) == "RC401: the ranks of pipeline coordinate " + std::to_string(second) +
                                   " need " + readable_bytes(most) + " of " + readable_bytes(most - 1) +
                                   " on " + name_of(to) +
                                   "; use more tp or pp, or fewer rows per microbatch");
    CHECK(refusal(0) == "nothing was thrown");  // 0: the memory is unknown
  }
}

}  // namespace gate_test
