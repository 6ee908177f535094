// SPDX-License-Identifier: Apache-2.0
// The costs of a step's calls: FLOPs from the model's sizes, bytes computed by hand, communication counted
// independently, and the roofline.
#include <doctest/doctest.h>

#include <rankc/plan/make_plan.hpp>
#include <rankc/models/gpt2.hpp>
#include <rankc/schedules/gpipe.hpp>

#include <emit/calls_of_step.hpp>
#include <emit/communications.hpp>
#include <emit/predicted.hpp>

#include <algorithm>

#include "plans.hpp"

namespace calls_test {

using namespace rankc;
using namespace rankc::codegen;
using doctest::Approx;
using runtime::call_kind;

namespace {

/// The sum over all ranks.
double total(const lowered& l, auto is, double calls_of_step::* what) {
  double all = 0;
  for (int rank = 0; rank < l.plan->dims.world; ++rank)
    for (const calls_of_step& c :
         count_calls(l, l.ranks[static_cast<std::size_t>(layout(l.plan->dims).at(rank)[axis::pp])]))
      if (is(c)) all += c.*what;
  return all;
}
double operations(const lowered& l, call_kind kind) {
  return total(l, [&](const calls_of_step& c) { return c.kind == kind; }, &calls_of_step::operations);
}

const calls_of_step& find(const std::vector<calls_of_step>& all, const std::string& name) {
  const auto at =
      std::find_if(all.begin(), all.end(), [&](const calls_of_step& c) { return c.name == name; });
  REQUIRE(at != all.end());
  return *at;
}

}  // namespace

TEST_CASE("however a plan is split, its products and its attention do what the model takes") {
  int plans = 0;
  for (const programs::job& j : programs::jobs)
    for (const programs::layout& l : programs::layouts) {
      const plan_data plan = programs::make(j, l);
      CAPTURE(plan.name);
      const double tokens = static_cast<double>(j.global_batch) * j.seq;
      const double of_layer = j.llama ? 64 * (64 + 2 * 32 + 64) + 3 * 64 * 176 : 4 * 64 * 64 + 2 * 64 * 256;
      const double of_heads =
          2 * tokens * j.seq * 64 * j.layers;  // both GEMMs of attention, half of whose scores are masked
      for (const lowered& low : {lower(plan, dtype::f64), lower(plan, dtype::bf16, target::cuda)}) {
        CHECK(operations(low, call_kind::product) ==
              Approx(6 * tokens * (j.layers * of_layer + 512 * 64)).epsilon(1e-12));
        CHECK(total(
                  low,
                  [](const calls_of_step& c) {
                    return c.name.starts_with("attention") && c.name.find("grad") == c.name.npos;
                  },
                  &calls_of_step::operations) == Approx(of_heads).epsilon(1e-12));
        CHECK(operations(low, call_kind::pass) + operations(low, call_kind::optimizer) +
                  operations(low, call_kind::communication) ==
              0);
      }
      ++plans;
    }
  CHECK(plans == std::size(programs::jobs) * std::size(programs::layouts));
}

TEST_CASE("what calls send is what is counted of communications") {
  double sent = 0;
  for (const programs::layout& l : programs::layouts) {
    const plan_data plan = programs::make(programs::jobs[2], l);
    CAPTURE(plan.name);
    const lowered low = lower(plan, dtype::bf16, target::cuda);
    for (const pipeline_rank& r : low.ranks) {
      double by_calls = 0, counted = 0;
      for (const calls_of_step& c : count_calls(low, r))
        if (c.kind == call_kind::communication && c.name != "receive") by_calls += c.bytes;
      for (const communications& c : count_communications(low, r)) counted += c.sent();
      CHECK(by_calls == Approx(counted).epsilon(1e-12));
      sent += counted;
    }
  }
  CHECK(sent > 0);
}

TEST_CASE("bytes are those of the operands: what is added to is read, too") {
  const plan_data once = programs::make(programs::jobs[0], programs::layouts[0]),
                  often = programs::make(programs::jobs[2], programs::layouts[0]);
  REQUIRE(once.actions.microbatches == 1);
  REQUIRE(often.actions.microbatches == 4);
  const double tokens = 256, width = 64, ffn = 256, layers = 4, real = 8;
  const double dw = 4 * width * width + 2 * width * ffn,
               rows_of_dw = (8 * width + 2 * (width + ffn)) * tokens, head = 512;  // the head's output rows
  for (const plan_data* plan : {&once, &often}) {
    const lowered l = lower(*plan, dtype::f64);
    const std::vector<calls_of_step> calls = count_calls(l, l.ranks[0]);
    const int microbatches = plan->actions.microbatches;
    const calls_of_step& norm = find(calls, "layer_norm");
    CHECK(norm.count == (2 * layers + 1) * microbatches);
    CHECK(norm.bytes == norm.count * real * (2 * tokens * width + 2 * tokens + 2 * width));
    // Embedding and head share the weight, and the head's backward is the first to add to its gradient.
    const double written = 2.0 * microbatches - 1;
    CHECK(find(calls, "linear_dw").bytes ==
          real * (layers * (written * dw + microbatches * rows_of_dw) + written * head * width +
                  microbatches * tokens * (width + head)));
    const calls_of_step& update = find(calls, "adamw");
    CHECK(update.count == 1);
    CHECK(update.bytes == 7 * real * static_cast<double>(l.ranks[0].trained_elements));
    CHECK(find(calls, "sum_squares").bytes == real * static_cast<double>(l.ranks[0].trained_elements));
  }
}

TEST_CASE("the roofline is below what a step is predicted to take, and known of a GPU in bf16 alone") {
  const training recipe{.seq = 1024, .global_batch = 64, .precision = bf16};
  const models::gpt2 model{
      .layers = 12, .hidden = 768, .heads = 12, .ffn = 3072, .vocab = 50304, .vocab_used = 50257};
  const plan_data plan =
      make_plan("gpt2", model, parallel_dims{}, schedules::gpipe{1}, recipe, clusters::h200<1>);
  REQUIRE(accepts(plan.diagnostics));
  const auto least = [&](dtype type, target to) {
    return total(lower(plan, type, to), [](const calls_of_step&) { return true; }, &calls_of_step::least);
  };
  const double roofline = least(dtype::bf16, target::cuda);
  const auto predicted = predict(lower(plan, dtype::bf16, target::cuda));
  REQUIRE(predicted);
  CHECK(roofline < predicted->step.step);
  CHECK(roofline > 0.5 * predicted->step.step);
  CHECK(least(dtype::f32, target::cuda) == 0);
  CHECK(least(dtype::f64, target::host) == 0);
  // A weight's gradient takes the time of its 16-bit operations at the card's peak.
  const lowered l = lower(plan, dtype::bf16, target::cuda);
  const std::vector<calls_of_step> calls = count_calls(l, l.ranks[0]);
  const calls_of_step& dw = find(calls, "linear_dw");
  CHECK(dw.least == Approx(dw.operations / 989e12));
}

}  // namespace calls_test
