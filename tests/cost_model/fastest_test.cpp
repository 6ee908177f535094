// SPDX-License-Identifier: Apache-2.0
// The best-first search finds what looking at all plans finds, and a compiler what a run does.
#include <doctest/doctest.h>

#include <rankc/best_plan.hpp>
#include <rankc/models/gpt2.hpp>
#include <rankc/models/llama.hpp>
#include <rankc/models/qwen3_moe.hpp>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>

using namespace rankc;

namespace {

/// How much of all the searches that found a plan judged.
struct tally {
  int problems = 0, feasible = 0, refused_for_memory = 0;
  long long all = 0, judged = 0;
};

/// Compare the searches of a question.
void compare(const auto& model, const planner::question& q, tally& t) {
  std::optional<planner::judged> best;
  long long all = 0;
  for (const planner::unscheduled& c : planner::unscheduled_choices(q, planner::experts_of(model)))
    for (const schedules::listed& s : planner::schedules_of(c.dims.pp, c.microbatches)) {
      report said;
      const auto j = planner::judge(model, q, {c, s}, said);
      ++all;
      t.refused_for_memory += j && !j->fits;
      if (j && j->fits && (!best || j->is_before(*best))) best = j;
    }
  planner::fastest_search search(model, q);
  const auto found = search.find();
  ++t.problems;
  INFO(q.gpus << " GPUs of " << q.gpu->name << ", " << q.machines.memory << " bytes, sequences of " << q.recipe.seq << ", batch " << q.recipe.global_batch);
  REQUIRE(found.has_value() == best.has_value());
  if (!best) return;
  ++t.feasible;
  t.all += all, t.judged += search.counts.judged;
  CHECK(found->time.step == best->time.step);
  CHECK(found->bytes == best->bytes);
}

/// Small problems, of one of three families, on nodes of any size, with memory for all plans, some or none.
class problems {
 public:
  explicit problems(unsigned seed) : random_(seed) {}
  void next(tally& t) {
    constexpr int gpus[]{1, 2, 3, 4, 6, 8}, per_node[]{2, 3, 4, 8}, batches[]{4, 6, 8, 12}, lengths[]{128, 512, 1024};
    planner::question q{.gpu = pick(2) ? &cost_model::h100 : &cost_model::h200, .gpus = gpus[pick(6)]};
    q.recipe = {.seq = lengths[pick(3)], .global_batch = batches[pick(4)], .precision = bf16};
    const int node = per_node[pick(4)];
    q.machines = {(q.gpus + node - 1) / node, node, 1'500'000'000 + static_cast<long long>(std::exp2(pick(80) / 10.0) * 1e8), 989e12, 450e9, 50e9, q.gpu->name};
    const int layers = 1 + pick(6), heads = 2 << pick(3), hidden = 64 * heads * (1 + pick(3)), vocab = 1024 * (1 + pick(24));
    const int family = pick(5);
    if (family < 2) compare(models::gpt2{.layers = layers, .hidden = hidden, .heads = heads, .ffn = 4 * hidden, .vocab = vocab}, q, t);
    else if (family < 4)
      compare(models::llama{.layers = layers, .hidden = hidden, .heads = heads, .kv_heads = 2, .ffn = 3 * hidden, .vocab = vocab}, q, t);
    else
      compare(models::qwen3_moe{.layers = layers, .hidden = hidden, .heads = heads, .kv_heads = 2, .head_dim = 64, .experts = 4, .top_k = 2,
                                .expert_ffn = hidden, .vocab = vocab}, q, t);
  }

 private:
  int pick(int n) { return std::uniform_int_distribution(0, n - 1)(random_); }
  std::mt19937 random_;
};

}  // namespace

TEST_CASE("bounds prune nothing that is the best") {
  const char* const asked = std::getenv("RANKC_PROBLEMS");
  const int n = asked ? std::atoi(asked) : 40;
  problems drawn(static_cast<unsigned>(n));
  tally t;
  for (int i = 0; i < n; ++i) drawn.next(t);
  std::printf("%d problems, %d with a plan that fits: of their %lld plans %lld were judged; %d plans did not fit\n", t.problems, t.feasible, t.all, t.judged,
              t.refused_for_memory);
  CHECK(t.feasible > n / 2);
  CHECK(t.refused_for_memory > 0);
  CHECK(t.judged < t.all / 10);
}

namespace {
inline constexpr models::llama model{.layers = 8, .hidden = 4096, .heads = 32, .kv_heads = 8, .ffn = 14336, .vocab = 128256};
inline constexpr training recipe{.seq = 8192, .global_batch = 4, .precision = bf16};
inline constexpr cluster two_gpus{1, 2, 141'000'000'000, 989e12, 450e9, 50e9, "h200"};
inline constexpr auto best = best_plan<model, two_gpus, recipe>();
static_assert(valid<best>);
}  // namespace

TEST_CASE("a compiler finds the plan that a run finds") {
  const planner::question q{two_gpus, &cost_model::h200, recipe, 2};
  const auto found = planner::fastest_search(model, q).find();
  REQUIRE(found.has_value());
  CHECK(found->choice.schedule == best.schedule);
  CHECK(found->choice.recompute == best.recipe.recompute);
  for (const named_degree& a : all_degrees) CHECK(found->choice.dims.*a.degree == best.dims.*a.degree);
  constexpr double seconds = step_time<best>;
  CHECK(seconds == found->time.step);
  constexpr std::size_t bytes = peak_bytes<best>;
  CHECK(bytes == found->bytes);
}

TEST_CASE("groups that do not divide a node lie on two") {
  using cost_model::span_of;
  CHECK(span_of(8, 1, 8).in_node == 8);
  CHECK(span_of(8, 2, 8).in_node == 4);   // ranks 0, 2, ..., 14
  CHECK(span_of(2, 8, 8).in_node == 1);
  CHECK(span_of(8, 1, 72).in_node == 8);
  CHECK(span_of(16, 1, 72).in_node == 8);  // ranks 64 to 79
  CHECK(span_of(3, 1, 8).in_node == 1);    // ranks 6 to 8
  CHECK(span_of(9, 8, 72).in_node == 9);
  CHECK(span_of(4, 144, 72).in_node == 1);
}
