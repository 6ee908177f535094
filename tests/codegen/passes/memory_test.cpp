// SPDX-License-Identifier: Apache-2.0
// Counted memory equals placed memory, and counted communication equals that of the lowered ranks, to the
// byte: for odd plans, random ones and every tested layout, on both targets. The compiler and the program
// count the same.
#include <doctest/doctest.h>

#include <experts/plans.hpp>
#include <fuzz/plan.hpp>
#include <lora/plans.hpp>
#include <odd/plans.hpp>
#include <rankc/codegen/lowered.hpp>
#include <rankc/cost_model/traffic.hpp>

#include "../../example_plans.hpp"
#include "../../some_of.hpp"
#include "emit/communications.hpp"
#include "plans.hpp"

#include <tuple>

namespace memory_test {

using namespace rankc::codegen;
namespace lowering = rankc::lowering;

namespace {

struct counted {
  int ranks = 0, plans = 0, send = 0;
};

/// The elements that a rank sends, without those of the loss and the norm.
double sent(const lowered& l, const pipeline_rank& r) {
  double all = 0;
  for (const communications& c : count_communications(l, r))
    if (c.phase != "step") all += c.sent();
  return all;
}

rankc::precision precision_of(dtype type) {
  if (type == dtype::f64) return rankc::f64;
  return type == dtype::f32 ? rankc::f32 : rankc::bf16;
}

/// Compare the counted memory with the placed memory, and with its bounds.
void hold(const rankc::plan_data& p, dtype type, target to, counted& n) {
  CAPTURE(p.name);
  const lowered l = lower(p, type, to);
  const auto s = lowering::setting_of(p, precision_of(type), to);
  const auto layers = lowering::lower_layers(p, s);
  const auto memory = lowering::memory_of(p, layers, s), bounds = lowering::memory_of(p, layers, s, true);
  const auto traffic = rankc::cost_model::traffic_of(p, layers, s);
  REQUIRE(memory.size() == l.ranks.size());
  for (std::size_t r = 0; r < memory.size(); ++r, ++n.ranks) {
    CHECK(memory[r].arena == l.ranks[r].arena.bytes);
    CHECK(memory[r].beside == bytes_beside_arena(l, l.ranks[r]));
    CHECK(bounds[r].total() <= memory[r].total());
    CHECK(bounds[r].total() + bounds[r].between >= memory[r].total());
    CHECK(traffic[r].all() == doctest::Approx(sent(l, l.ranks[r])).epsilon(1e-12));
    n.send += traffic[r].all() > 0;
  }
  ++n.plans;
}
void hold_on_both(const rankc::plan_data& p, counted& n) {
  hold(p, dtype::f64, target::host, n);
  hold(p, dtype::bf16, target::cuda, n);
}

/// The memory of the rank that needs most, as placed.
std::size_t most(const rankc::plan_data& p, dtype type, target to) {
  const lowered l = lower(p, type, to);
  std::size_t bytes = 0;
  for (const pipeline_rank& r : l.ranks) bytes = std::max(bytes, r.arena.bytes + bytes_beside_arena(l, r));
  return bytes;
}

}  // namespace

TEST_CASE("the memory of odd plans and of all layouts is counted as it is placed") {
  using rankc::test::some_of;
  counted n;
  for (const split_plan& p : some_of(odd::plans())) hold_on_both(p.plan, n);
  std::vector<rankc::plan_data> layouts;
  for (const programs::job& j : programs::jobs)
    for (const programs::layout& l : programs::layouts) layouts.push_back(programs::make(j, l));
  for (const rankc::plan_data& p : some_of(layouts)) hold_on_both(p, n);
  for (const programs::pipeline& p : some_of(programs::pipelines())) hold_on_both(programs::make(p), n);
  for (const split_plan& v : some_of(adapting::plans())) hold_on_both(v.plan, n);
  CHECK(n.plans > some_of(400));
  CHECK(n.send > n.ranks / 2);
  CHECK(n.ranks > 2 * n.plans / 2);
}

TEST_CASE("what is frozen takes its weights alone: in bf16 two bytes an element, else those of one region") {
  const auto arena = [](const char* job, dtype type, target to) {
    for (const split_plan& v : adapting::plans())
      if (v.job == job && v.layout == "one") return lower(v.plan, type, to).ranks[0];
    throw std::logic_error("no such plan");
  };
  for (const auto& [type, to, bytes] : {std::tuple(dtype::f64, target::host, 8),
                                        {dtype::f32, target::cuda, 4},
                                        {dtype::bf16, target::cuda, 4}}) {
    const pipeline_rank dense = arena("gpt2_dense", type, to), adapted = arena("gpt2", type, to);
    const std::size_t trained = adapted.trained_elements * bytes, all = adapted.parameter_elements * bytes;
    CHECK(dense.trained_elements == dense.parameter_elements);
    CHECK(adapted.parameter_elements - adapted.trained_elements == dense.parameter_elements);
    CHECK(adapted.trained_elements < dense.parameter_elements / 4);
    const std::size_t weights = adapted.arena.gradients - adapted.arena.weights,
                      gradients = adapted.arena.first_moment - adapted.arena.gradients,
                      moments = adapted.arena.second_moment - adapted.arena.first_moment;
    CHECK(weights == aligned(type == dtype::bf16 ? trained : all));
    CHECK(gradients == aligned(trained));
    CHECK(moments == aligned(trained));
  }
}

TEST_CASE("the memory of random plans is counted as it is placed") {
  counted n;
  for (std::uint64_t i = 0; n.plans < rankc::test::some_of(300); ++i) {
    const rankc::plan_data p = fuzz::make(fuzz::draw_plan(11, i), "p" + std::to_string(i));
    if (accepts(p.diagnostics)) hold_on_both(p, n);
  }
  CHECK(n.ranks > n.plans);
}

TEST_CASE("the memory of plans with experts is counted as it is placed") {
  counted n;
  for (const split_plan& p : rankc::test::some_of(experts::plans())) hold_on_both(p.plan, n);
  CHECK(n.plans == 2 * rankc::test::some_of(118));
}

TEST_CASE("comm_bytes is a constant: what the rank that sends most does") {
  const double bytes = examples::counted.llama3_8b_sends;
  const lowered l = lower(examples::plan("llama3_8b"), dtype::bf16, target::cuda);
  double most = 0;
  for (const pipeline_rank& r : l.ranks) most = std::max(most, sent(l, r));
  CHECK(bytes == doctest::Approx(most).epsilon(1e-12));
  CHECK(bytes > 1e9);
}

TEST_CASE("peak_bytes is a constant, and what the generator places") {
  const examples::constants& counted = examples::counted;
  CHECK(counted.gpt_dp2_tp2_pp2 == most(examples::plan("gpt_dp2_tp2_pp2"), dtype::f32, target::host));
  CHECK(counted.gpt_dual_pipe_v == most(examples::plan("gpt_dual_pipe_v"), dtype::f32, target::host));
  CHECK(counted.llama3_8b == most(examples::plan("llama3_8b"), dtype::bf16, target::cuda));
  CHECK(counted.llama3_8b_on_host == most(examples::plan("llama3_8b"), dtype::f32, target::host));
}

}  // namespace memory_test
