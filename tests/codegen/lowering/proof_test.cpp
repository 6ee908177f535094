// SPDX-License-Identifier: Apache-2.0
// The proof and the checker on lowered plans, and on 10,000 mutants of them.
#include <doctest/doctest.h>

#include <rankc/codegen/certificate.hpp>
#include <rankc/codegen/lowered.hpp>
#include <rankc/codegen/prove.hpp>
#include <rankc/codegen/verify.hpp>

#include "plans.hpp"
#include "proof/mutations.hpp"

using namespace rankc::codegen;

namespace {

void check_certificates(const rankc::plan_data& plan, bool verified) {
  CAPTURE(plan.name);
  REQUIRE(plan.diagnostics.empty());
  for (const lowered& low : {lower(plan, dtype::f64), lower(plan, dtype::bf16, target::cuda)})
    for (const program& p : {expand_train(low), expand_evaluate(low)}) {
      CAPTURE(static_cast<int>(low.type));
      const verdict v = prove(p);
      REQUIRE_MESSAGE(v.ok, (v.reasons.empty() ? "" : v.reasons[0]));
      if (verified) CHECK(verify(certificate(p, v)) == "");
    }
}

}  // namespace

TEST_CASE("every test plan has a certificate, for training and for evaluation") {
  for (const programs::job& j : programs::jobs)
    for (const programs::layout& l : programs::layouts) check_certificates(programs::make(j, l), j.global_batch == 4);
  for (const programs::pipeline& p : programs::pipelines()) check_certificates(programs::make(p), p.dp == 1);
}

TEST_CASE("no buffer makes a sound schedule hang, on any number of ranks with any number of microbatches") {
  using programs::order;
  for (order by : programs::orders)
    for (int pp : {2, 3, 5})
      for (int microbatches : {1, 3, 10})
        if (by != order::own || pp < 4) check_certificates(programs::make({"tiny_gpt2", "any", by, 1, 1, pp, microbatches}), false);
  for (int pp : {2, 3, 5}) check_certificates(programs::make({"tiny_gpt2", "any", order::interleaved, 1, 1, pp, 10, 3}), false);
  for (int pp : {2, 4})
    for (int microbatches : {2, 6}) check_certificates(programs::make({"tiny_gpt2", "any", order::dual_pipe, 1, 1, pp, microbatches}), false);
}

TEST_CASE("mutants of lowered programs: no false accept, proof and checker agree") {
  // Small models, so that many mutants fit in a test; every kind of communication occurs.
  const programs::job small[]{{"gpt2", false, 2, 4, 8, 1}, {"llama", true, 2, 4, 8, 1}};
  testing::mutation_report sum;
  unsigned seed = 1;
  for (const programs::job& j : small)
    for (const programs::layout& l : programs::layouts) {
      if (l.pp > j.layers || (l.by != programs::order::gpipe && l.by != programs::order::one_f_one_b)) continue;
      const rankc::plan_data plan = programs::make(j, l);
      const program p = expand_train(seed % 2 ? lower(plan, dtype::f32) : lower(plan, dtype::bf16, target::cuda));
      sum += testing::run_mutations(p, l.dp * l.tp * l.pp == 8 ? 250 : 600, seed++);
    }
  using programs::order;
  for (const order by : {order::interleaved, order::zero_bubble_v, order::dual_pipe, order::dual_pipe_v}) {
    const rankc::plan_data plan = programs::make({"tiny_gpt2", "mutants", by, 1, 1, 2, 2, by == order::dual_pipe ? 1 : 2, 4});
    sum += testing::run_mutations(expand_train(lower(plan, dtype::f32)), 150, seed++);
  }
  MESSAGE(testing::to_text(sum));
  CHECK(sum.total.mutants >= 10'000);
  CHECK(sum.false_accepts.empty());
  CHECK(sum.disagreements.empty());
  for (const std::string& s : sum.false_accepts) MESSAGE(s);
  for (const std::string& s : sum.disagreements) MESSAGE(s);
}
