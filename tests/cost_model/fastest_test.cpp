// SPDX-License-Identifier: Apache-2.0
// The best-first search finds the same plans as a full evaluation, in the same order.
#include <doctest/doctest.h>

#include <rankc/best_plan.hpp>
#include <rankc/models/encoder.hpp>
#include <rankc/models/gpt2.hpp>
#include <rankc/models/llama.hpp>
#include <rankc/models/qwen3_moe.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <span>

using namespace rankc;

namespace {

/// How many of all choices the searches judged, over the problems that have a plan.
struct tally {
  int problems = 0, feasible = 0, refused_for_memory = 0, beyond_bounds = 0;
  long long all = 0, judged = 0;
};

/// Whether the choices, their times and their memory are the same.
bool are_same(const plan_search::judged& a, const plan_search::judged& b) {
  for (const named_degree& d : all_degrees)
    if (a.choice.dims.*d.degree != b.choice.dims.*d.degree) return false;
  return a.choice.dims.reshard == b.choice.dims.reshard && a.choice.schedule == b.choice.schedule &&
         a.choice.recompute == b.choice.recompute && a.time.step == b.time.step && a.bytes == b.bytes;
}
void check_same(const std::vector<plan_search::judged>& found,
                std::span<const plan_search::judged> expected) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) CHECK(are_same(found[i], expected[i]));
}

/// All choices that break no rule, with their bounds before they are judged.
class all_plans {
 public:
  all_plans(const auto& model, const plan_search::question& q, tally& t) {
    plan_search::choice_bounds bounds(model, q);
    for (const plan_search::unscheduled& c :
         plan_search::unscheduled_choices(q, plan_search::experts_of(model))) {
      const plan_search::bound least = bounds.least(c);
      for (const schedules::listed& s : plan_search::schedules_of(c.dims.pp, c.microbatches)) {
        ++n;
        report said;
        const auto j = plan_search::judge(model, q, {c, s}, said);
        if (!j) continue;
        t.refused_for_memory += !j->fits;
        if (j->fits) fitting.push_back(*j);
        t.beyond_bounds += !is_within(*j, least) || !keeps_bounds(bounds, *j);
      }
    }
    std::stable_sort(fitting.begin(), fitting.end(),
                     [](const auto& a, const auto& b) { return a.is_before(b); });
  }
  std::vector<plan_search::judged> front() const {
    std::vector<plan_search::judged> front;
    for (const plan_search::judged& j : fitting)
      if (front.empty() || j.bytes < front.back().bytes) front.push_back(j);
    return front;
  }
  std::vector<plan_search::judged> fitting;  // fastest first
  long long n = 0;

 private:
  static bool is_within(const plan_search::judged& j, const plan_search::bound& least) {
    return least.step <= j.time.step && least.bytes <= j.bytes;
  }
  static bool keeps_bounds(auto& bounds, const plan_search::judged& j) {
    const action_table placement = j.choice.schedule.placement(j.choice.dims.pp);
    const auto step = bounds.placed_step(j.choice, placement, false),
               in_halves = bounds.placed_step(j.choice, placement, true);
    const auto predicted = bounds.predicted(j.choice, true);
    if (!step || !in_halves || !predicted) return false;
    plan_search::placed_memory memory = bounds.memory_of_placed(j.choice, false);
    if (j.choice.schedule.in_halves()) memory.join(bounds.memory_of_placed(j.choice, true));
    const double placed = j.choice.schedule.in_halves() ? std::min(*step, *in_halves) : *step;
    return is_within(j, {placed, memory.most()}) &&
           memory.most_with(*bounds.in_flight(j.choice)) <= j.bytes && is_within(j, *predicted) &&
           predicted->step > (1 - 1e-8) * j.time.step;
  }
};

/// Compare the searches for one question.
void compare(const auto& model, const plan_search::question& q, int top, tally& t) {
  INFO(q.gpus << " GPUs of " << q.gpu->name << ", " << q.machines.memory << " bytes, sequences of "
              << q.recipe.seq << ", batch " << q.recipe.global_batch);
  const all_plans all(model, q, t);
  const plan_search::ranking found = plan_search::rank_plans(model, q, {top, true}),
                             alone = plan_search::rank_plans(model, q, {top, false});
  const std::span first(all.fitting.data(), std::min(all.fitting.size(), static_cast<std::size_t>(top)));
  ++t.problems;
  check_same(found.top, first);
  check_same(alone.top, first);
  check_same(found.front, all.front());
  if (all.fitting.empty()) return;
  ++t.feasible;
  t.all += all.n;
  t.judged += found.counts.judged;
}

/// Small problems with one of three model families, nodes of any size, and memory for all plans, some or
/// none.
class problems {
 public:
  explicit problems(unsigned seed, linear_precision linears = linear_precision::plain)
      : random_(seed), linears_(linears) {}
  void next(tally& t) {
    constexpr int gpus[]{1, 2, 3, 4, 6, 8}, per_node[]{2, 3, 4, 8}, batches[]{4, 6, 8, 12},
        lengths[]{128, 512, 1024};
    plan_search::question q{.gpu = pick(2) ? &cost_model::h100 : &cost_model::h200, .gpus = gpus[pick(6)]};
    q.recipe = {
        .seq = lengths[pick(3)], .global_batch = batches[pick(4)], .precision = bf16, .linears = linears_};
    const int node = per_node[pick(4)];
    q.machines = {(q.gpus + node - 1) / node,
                  node,
                  1'500'000'000 + static_cast<long long>(std::exp2(pick(80) / 10.0) * 1e8),
                  989e12,
                  450e9,
                  50e9,
                  q.gpu->name};
    const int layers = 1 + pick(6), heads = 2 << pick(3), hidden = 64 * heads * (1 + pick(3) % 2),
              vocab = 1024 * (1 + pick(24));
    const int family = pick(5), top = 1 + pick(20);
    if (family < 2)
      compare(
          models::gpt2{.layers = layers, .hidden = hidden, .heads = heads, .ffn = 4 * hidden, .vocab = vocab},
          q, top, t);
    else if (family < 4)
      compare(models::llama{.layers = layers,
                            .hidden = hidden,
                            .heads = heads,
                            .kv_heads = 2,
                            .ffn = 3 * hidden,
                            .vocab = vocab},
              q, top, t);
    else
      compare(models::qwen3_moe{.layers = layers,
                                .hidden = hidden,
                                .heads = heads,
                                .kv_heads = 2,
                                .head_dim = 64,
                                .experts = 4,
                                .top_k = 2,
                                .expert_ffn = hidden,
                                .vocab = vocab},
              q, top, t);
  }

 private:
  int pick(int n) { return std::uniform_int_distribution(0, n - 1)(random_); }
  std::mt19937 random_;
  linear_precision linears_;
};

}  // namespace

TEST_CASE("bounds prune nothing that is among the fastest, or on the front") {
  const char* const asked = std::getenv("RANKC_PROBLEMS");
  const int n = asked ? std::atoi(asked) : 15;
  problems drawn(static_cast<unsigned>(n));
  tally t;
  for (int i = 0; i < n; ++i) drawn.next(t);
  std::printf(
      "%d problems, %d with a plan that fits: of their %lld plans %lld were judged; %d plans did not fit\n",
      t.problems, t.feasible, t.all, t.judged, t.refused_for_memory);
  CHECK(t.beyond_bounds == 0);
  CHECK(t.feasible > n / 2);
  CHECK(t.refused_for_memory > 0);
  CHECK(t.judged < t.all / 4);
}

TEST_CASE("nor do they of plans whose linear layers are in eight bits") {
  for (const linear_precision linears : {fp8, fp8_rows}) {
    problems drawn(5, linears);
    tally t;
    for (int i = 0; i < 8; ++i) drawn.next(t);
    CHECK(t.beyond_bounds == 0);
    CHECK(t.feasible > 2);
  }
}

TEST_CASE("the search finds the fastest plans of encoders, which read dense features") {
  constexpr models::vision_transformer images{
      .layers = 4, .hidden = 256, .heads = 4, .ffn = 1024, .patch = 48, .classes = 16};
  constexpr models::regression_encoder series{
      .layers = 4, .hidden = 256, .heads = 4, .ffn = 1024, .features = 32, .outputs = 4};
  tally t;
  for (const int gpus : {1, 2, 4, 8}) {
    const cluster machines{1, gpus, 16'000'000'000, 989e12, 450e9, 50e9, "h200"};
    const training recipe{.seq = 256, .global_batch = 16, .precision = bf16};
    const plan_search::question q{machines, &cost_model::h200, recipe, gpus};
    compare(images, q, 10, t);
    compare(series, q, 10, t);
  }
  CHECK(t.feasible == 8);
}

TEST_CASE("groups that do not divide a node lie on two") {
  using cost_model::span_of;
  CHECK(span_of(8, 1, 8).in_node == 8);
  CHECK(span_of(8, 2, 8).in_node == 4);  // ranks 0, 2, ..., 14
  CHECK(span_of(2, 8, 8).in_node == 1);
  CHECK(span_of(8, 1, 72).in_node == 8);
  CHECK(span_of(16, 1, 72).in_node == 8);  // ranks 64 to 79
  CHECK(span_of(3, 1, 8).in_node == 1);    // ranks 6 to 8
  CHECK(span_of(9, 8, 72).in_node == 9);
  CHECK(span_of(4, 144, 72).in_node == 1);
}
