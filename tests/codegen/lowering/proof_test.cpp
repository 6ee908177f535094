// SPDX-License-Identifier: Apache-2.0
// The proof and the checker on lowered plans, and on mutants of them.
#include <doctest/doctest.h>

#include <rankc/codegen/certificate.hpp>
#include <rankc/codegen/lowered.hpp>
#include <rankc/codegen/prove.hpp>
#include <rankc/codegen/verify.hpp>

#include <algorithm>
#include <iterator>

#include "plans.hpp"
#include "proof/expect_sound.hpp"

using namespace rankc::codegen;

namespace {

/// Returns how many programs are proven.
int check_certificates(const rankc::plan_data& plan, bool verified) {
  int proven = 0;
  CAPTURE(plan.name);
  REQUIRE(plan.diagnostics.empty());
  for (const lowered& low : {lower(plan, dtype::f64), lower(plan, dtype::bf16, target::cuda)})
    for (const program& p : {expand_train(low), expand_evaluate(low)}) {
      CAPTURE(static_cast<int>(low.type));
      const verdict v = prove(p);
      REQUIRE_MESSAGE(v.ok, (v.reasons.empty() ? "" : v.reasons[0]));
      if (verified) CHECK(verify(certificate(p, v)) == "");
      proven += std::any_of(p.ranks.begin(), p.ranks.end(), [](const rank_program& r) { return r.ops.size() > 2; });
    }
  return proven;
}

}  // namespace

TEST_CASE("every test plan has a certificate, for training and for evaluation") {
  int proven = 0, alone = 0;
  for (const programs::job& j : programs::jobs)
    for (const programs::layout& l : programs::layouts) proven += check_certificates(programs::make(j, l), j.global_batch == 4);
  for (const programs::pipeline& p : programs::pipelines()) {
    proven += check_certificates(programs::make(p), p.dp == 1);
    alone += p.inference;
  }
  // On both targets, training and evaluation; of forwards alone no training.
  const std::size_t plans = std::size(programs::jobs) * std::size(programs::layouts) + programs::pipelines().size();
  CHECK(alone == 3);
  CHECK(proven == 4 * static_cast<int>(plans) - 2 * alone);
}

TEST_CASE("no buffer makes a sound schedule hang, on any number of ranks with any number of microbatches") {
  using programs::order;
  int proven = 0;
  for (order by : programs::orders)
    for (int pp : {2, 3, 5})
      for (int microbatches : {1, 3, 10})
        if (by != order::own || pp < 4) proven += check_certificates(programs::make({"tiny_gpt2", "any", by, 1, 1, pp, microbatches}), false);
  for (int pp : {2, 3, 5}) proven += check_certificates(programs::make({"tiny_gpt2", "any", order::interleaved, 1, 1, pp, 10, 3}), false);
  for (int pp : {2, 4})
    for (int microbatches : {2, 6})
      proven += check_certificates(programs::make({"tiny_gpt2", "any", order::dual_pipe, 1, 1, pp, microbatches}), false);
  CHECK(proven == 4 * (static_cast<int>(std::size(programs::orders)) * 9 - 3 + 3 + 4));
}

namespace {

/// Mutants of lowered programs of small models, so that many fit in a test; every kind of communication occurs. Returns how
/// many programs there are.
int judge_mutants(int of_small, int of_large, testing::mutation_report& sum) {
  const programs::job small[]{{"gpt2", false, 2, 4, 8, 1}, {"llama", true, 2, 4, 8, 1}};
  unsigned seed = 1;
  int programs_mutated = 0;
  for (const programs::job& j : small)
    for (const programs::layout& l : programs::layouts) {
      if (l.pp > j.layers || (l.by != programs::order::gpipe && l.by != programs::order::one_f_one_b)) continue;
      const rankc::plan_data plan = programs::make(j, l);
      const program p = expand_train(seed % 2 ? lower(plan, dtype::f32) : lower(plan, dtype::bf16, target::cuda));
      sum += testing::run_mutations(p, l.dp * l.tp * l.pp == 8 ? of_large : of_small, seed++);
      ++programs_mutated;
    }
  using programs::order;
  for (const order by : {order::interleaved, order::zero_bubble_v, order::dual_pipe, order::dual_pipe_v}) {
    const rankc::plan_data plan = programs::make({"tiny_gpt2", "mutants", by, 1, 1, 2, 2, by == order::dual_pipe ? 1 : 2, 4});
    sum += testing::run_mutations(expand_train(lower(plan, dtype::f32)), of_large, seed++);
    ++programs_mutated;
  }
  return programs_mutated;
}

}  // namespace

TEST_CASE("mutants of lowered programs: no false accept, proof and checker agree") {
  testing::mutation_report sum;
  CHECK(judge_mutants(250, 100, sum) == 24);
  MESSAGE(testing::to_text(sum));
  testing::expect_sound_and_telling(sum);
}

TEST_CASE("20,000 mutants of lowered programs" * doctest::skip()) {
  testing::mutation_report sum;
  CHECK(judge_mutants(1000, 500, sum) == 24);
  MESSAGE(testing::to_text(sum));
  testing::expect_sound_and_telling(sum);
}
