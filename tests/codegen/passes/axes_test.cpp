// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <rankc/codegen/lowered.hpp>
#include <rankc/plan/make_plan.hpp>
#include <rankc/models/gpt2.hpp>
#include <rankc/schedules/gpipe.hpp>

#include <passes/roles.hpp>

#include <stdexcept>

namespace axes_test {

using namespace rankc;
using codegen::dtype;

namespace {

plan_data planned(const parallel_dims& d) {
  return make_plan("gpt", models::gpt2{.layers = 2, .hidden = 32, .heads = 4, .ffn = 64, .vocab = 64}, d,
                   schedules::gpipe{1}, training{.seq = 8, .global_batch = 4}, clusters::cpu);
}

/// The text of the exception that lowering throws; empty if none.
std::string thrown(const plan_data& p) {
  REQUIRE(accepts(p.diagnostics));
  try {
    codegen::lower(p, dtype::f32);
  } catch (const std::logic_error& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a conversion over an axis that is not lowered is never a copy") {
  CHECK(thrown(planned({})) == "");
  for (const op_row* kind :
       {&ops::replicate, &ops::all_reduce, &ops::all_gather, &ops::reduce_scatter, &ops::all_reduce_max})
    for (axis over : {axis::dp_replicate, axis::dp_shard}) {
      plan_data other = planned({});
      other.dims.*row(over).degree = other.dims.world = 2;
      // Replace the embedding's first conversion by `kind` over another axis.
      std::vector<op>& list = other.kinds[0].ops.ops;
      const auto conversion = std::find_if(list.begin(), list.end(),
                                           [](const op& o) { return o.kind->converts != conversion::none; });
      REQUIRE(conversion != list.end());
      conversion->kind = kind;
      conversion->over = over;
      CHECK(thrown(other) == "layer 'embedding': " + std::string(kind->name) + " over " +
                                 std::string(name(over)) + " is not lowered");
    }
}

TEST_CASE("what groups communicate that no role has is refused") {
  CHECK_THROWS_WITH_AS(codegen::role_over(axis::edp), "what the groups of edp communicate is not lowered",
                       std::logic_error);
  CHECK_THROWS_WITH_AS(codegen::role_along(axis::edp_replicate), "edp_replicate is not lowered",
                       std::logic_error);
}

}  // namespace axes_test
