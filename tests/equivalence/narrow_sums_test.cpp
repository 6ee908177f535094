// SPDX-License-Identifier: Apache-2.0
// Sums that go between ranks in bf16 where the recipe reduces in bf16: those of gradients of parameters, and
// no others.
#include <doctest/doctest.h>

#include <rankc/plan/make_plan.hpp>
#include <rankc/rankc.hpp>

#include "refused.hpp"
#include "small_experts.hpp"

namespace narrow_sums_test {

using namespace equivalence_tests;

namespace {

rankc::plan_data planned(const auto& model, const rankc::parallel_dims& dims) {
  using namespace rankc;
  return make_plan(
      "narrow", model, dims, schedules::gpipe{1},
      training{.seq = 8, .global_batch = 4, .precision = bf16, .reductions = bf16, .ignored_label = -100},
      clusters::h200<8>);
}
const subject& masked() {
  static const subject made(
      planned(
          rankc::models::llama{.layers = 1, .hidden = 16, .heads = 4, .kv_heads = 2, .ffn = 24, .vocab = 32},
          {.world = 4, .dp_replicate = 2, .tp = 2}),
      target::cuda, dtype::bf16);
  return made;
}
const subject& balanced() {
  static const subject made = [] {
    rankc::models::qwen3_moe model = small_experts(2, 4);
    model.router_losses = {.balance = 0.01};
    return subject(planned(model, {.world = 2, .dp_replicate = 2}), target::cuda, dtype::bf16);
  }();
  return made;
}

/// Collectives of this name send bf16.
auto narrowed(const char* name) {
  return [=](subject& s) {
    for (op* o : s.find_all(name)) o->in_bf16 = true;
  };
}

}  // namespace

TEST_CASE("gradients alone are sent in bf16") {
  CHECK(masked().reason() == "");
  CHECK(balanced().reason() == "");
}

TEST_CASE("the number of labels, sums of exponentials or statistics of routers are sent in bf16") {
  CHECK(check_refused(masked(), 7787, narrowed("number of labels")).arguments.at(0) == "count");
  CHECK(check_refused(masked(), 7787, narrowed("head: all_reduce of exp_sums")).arguments.at(0) == "sums");
  CHECK(check_refused(balanced(), 7787, narrowed("head: all_reduce of statistics")).arguments.at(0) ==
        "whole");
}

}  // namespace narrow_sums_test
