// SPDX-License-Identifier: Apache-2.0
// The proof and the checker on lowered plans, and on mutants of them.
#include <doctest/doctest.h>

#include <rankc/codegen/certificate.hpp>
#include <rankc/codegen/equivalence.hpp>
#include <rankc/codegen/lowered.hpp>
#include <rankc/codegen/prove.hpp>
#include <rankc/codegen/verify.hpp>

#include <algorithm>
#include <iterator>

#include "../../said.hpp"
#include "../../some_of.hpp"
#include "plans.hpp"
#include "proof/expect_sound.hpp"

namespace proof_test {

using namespace rankc::codegen;

namespace {

/// The checker accepts the certificate, and the certificate read back equals the program.
void check_text(const program& p, const verdict& v, const specification& model) {
  const std::string text = certificate({{p, v}}, model);
  CHECK(verify(text) == "");
  certified read = read_certificate(text);
  REQUIRE(read.steps.size() == 1);
  program& again = read.steps[0].program;
  CHECK(again.plan == p.plan);
  CHECK(again.plan_hash == p.plan_hash);
  for (std::size_t r = 0; r < p.ranks.size(); ++r)
    for (std::size_t i = 0; i < p.ranks[r].ops.size(); ++i)
      CHECK(again.ranks[r].ops[i].views == p.ranks[r].ops[i].views);
  CHECK(certificate({{again, read.steps[0].verdict}}, read.model) == text);
}

/// Returns: the number of proven programs.
int check_certificates(const rankc::plan_data& plan, bool verified) {
  int proven = 0;
  CAPTURE(plan.name);
  REQUIRE(plan.diagnostics.empty());
  for (const lowered& low : {lower(plan, dtype::f64), lower(plan, dtype::bf16, target::cuda)})
    for (const program& p : {expand_train(low), expand_evaluate(low)}) {
      CAPTURE(static_cast<int>(low.type));
      if (p.step == "train" && !low.trains()) continue;
      const verdict v = prove(p);
      REQUIRE_MESSAGE(v.ok, (v.reasons.empty() ? "" : v.reasons[0]));
      if (verified) check_text(p, v, specify(plan));
      ++proven;
    }
  return proven;
}

}  // namespace

TEST_CASE("every test plan has a certificate, for training and for evaluation") {
  int proven = 0, alone = 0, plans = 0;
  std::size_t n = 0;
  for (const programs::job& j : programs::jobs)
    for (const programs::layout& l : programs::layouts) {
      if (!rankc::test::takes(n++)) continue;
      ++plans;
      proven += check_certificates(programs::make(j, l), j.global_batch == 4);
    }
  for (const programs::pipeline& p : programs::pipelines()) {
    if (!p.inference && !rankc::test::takes(n++)) continue;
    ++plans;
    proven += check_certificates(programs::make(p), p.dp == 1);
    alone += p.inference;
  }
  // Each plan has training and evaluation on both targets; inference plans have no training.
  CHECK(alone == 3);
  CHECK(proven == 4 * plans - 2 * alone);
}

TEST_CASE("no buffer makes a sound schedule hang, on any number of ranks with any number of microbatches") {
  using programs::order;
  std::vector<programs::pipeline> all;
  for (int pp : {2, 3, 5})
    for (int microbatches : {1, 3, 10})
      for (order by : programs::orders)
        if (by != order::own || pp < 4) all.push_back({"tiny_gpt2", "any", by, 1, 1, pp, microbatches});
  for (int pp : {2, 3, 5}) all.push_back({"tiny_gpt2", "any", order::interleaved, 1, 1, pp, 10, 3});
  for (int pp : {2, 4})
    for (int microbatches : {2, 6})
      all.push_back({"tiny_gpt2", "any", order::dual_pipe, 1, 1, pp, microbatches});
  CHECK(all.size() == std::size(programs::orders) * 9 - 3 + 3 + 4);
  int proven = 0, plans = 0;
  for (const programs::pipeline& p : rankc::test::some_of(all)) {
    proven += check_certificates(programs::make(p), false);
    ++plans;
  }
  CHECK(proven == 4 * plans);
}

TEST_CASE("a plan of which no gradient is summed over dp, or over tp, or between tied weights is refused") {
  const auto refused = [](const rankc::plan_data& plan, target to, const std::string& ending, int id,
                          const std::string& what) {
    CAPTURE(plan.name);
    CAPTURE(ending);
    program p = expand_train(lower(plan, dtype::f32, to));
    REQUIRE(prove(p).ok);
    int removed = 0;
    testing::remove_collectives(p, [&](const std::string& name) {
      const bool gone = name.starts_with("gradients of ") && name.ends_with(ending);
      removed += gone;
      return gone;
    });
    CHECK(removed > 0);
    const verdict v = prove(p);
    REQUIRE_MESSAGE(v.ok, v.reasons[0]);
    const equivalence e = check_equivalence(p, v, specify(plan));
    REQUIRE_FALSE(e.holds);
    const rankc::test::said refusal = rankc::test::said_in(e.reasons[0]);
    CHECK_MESSAGE(refusal.id == id, e.reasons[0]);
    CHECK(refusal.arguments[0] == what);
  };
  const programs::job gpt2{"gpt2", false, 2, 4, 8, 1}, llama{"llama", true, 2, 4, 8, 1};
  const programs::layout all{"all", 2, 2, 2, true, programs::order::one_f_one_b, 4};
  for (const target to : {target::host, target::cuda})
    for (const programs::job& j : {gpt2, llama}) {
      refused(programs::make(j, all), to, " over dp", 7402, "the gradient of layers.1.wq");
      refused(programs::make(j, all), to, " over tp", 7402, "the gradient of layers.1.norm1");
    }
  refused(programs::make(gpt2, all), target::host, " between first and last stage", 7692,
          "embedding: embedding_grad");
  refused(programs::make({"tiny_gpt2", "two_ways", programs::order::dual_pipe, 1, 1, 2, 2, 1, 4}),
          target::host, " between the two ranks of a stage", 7402, "the gradient of wpe");
}

TEST_CASE("products, attention and norms never write over what they read, except to add to it") {
  int products = 0, in_place = 0;
  for (const programs::job& j : programs::jobs)
    for (const programs::layout& l : programs::layouts) {
      const rankc::plan_data plan = programs::make(j, l);
      for (const target to : {target::host, target::cuda}) {
        const program p = expand_train(lower(plan, to == target::host ? dtype::f32 : dtype::bf16, to));
        for (const rank_program& r : p.ranks)
          for (const op& o : r.ops) {
            const std::string kernel = o.name.substr(o.name.rfind(' ') + 1);
            in_place += std::any_of(o.writes.begin(), o.writes.end(),
                                    [](const access& w) { return w.replaces >= 0; });
            bool never = false;
            for (const char* name :
                 {"linear", "linear_bias", "linear_gelu", "linear_bias_gelu", "linear_dx_gelu", "attention",
                  "attention_grad", "swiglu", "swiglu_grad", "layer_norm", "rms_norm", "embedding", "row_max",
                  "exp_sums", "softmax_sums", "copy"})
              never |= kernel == name;
            if (!never) continue;
            ++products;
            for (const access& w : o.writes) {
              CAPTURE(o.name);
              CHECK(w.replaces == -1);
              for (const access& read : o.reads) CHECK((read.end <= w.begin || w.end <= read.begin));
            }
          }
      }
    }
  CHECK(products > 10'000);
  CHECK(in_place > 10'000);
}

namespace {

/// Judge mutants of lowered programs. The models are small, so that many fit in a test, and every kind of
/// communication occurs. Returns: the number of programs.
int judge_mutants(int of_small, int of_large, testing::mutation_report& sum) {
  const programs::job small[]{{"gpt2", false, 2, 4, 8, 1}, {"llama", true, 2, 4, 8, 1}};
  unsigned seed = 1;
  int programs_mutated = 0;
  for (const programs::job& j : small)
    for (const programs::layout& l : programs::layouts) {
      if (l.pp > j.layers || (l.by != programs::order::gpipe && l.by != programs::order::one_f_one_b))
        continue;
      const rankc::plan_data plan = programs::make(j, l);
      const program p =
          expand_train(seed % 2 ? lower(plan, dtype::f32) : lower(plan, dtype::bf16, target::cuda));
      sum += testing::run_mutations(p, l.dp * l.tp * l.pp == 8 ? of_large : of_small, seed++);
      ++programs_mutated;
    }
  using programs::order;
  for (const order by : {order::interleaved, order::zero_bubble_v, order::dual_pipe, order::dual_pipe_v}) {
    const rankc::plan_data plan =
        programs::make({"tiny_gpt2", "mutants", by, 1, 1, 2, 2, by == order::dual_pipe ? 1 : 2, 4});
    sum += testing::run_mutations(expand_train(lower(plan, dtype::f32)), of_large, seed++);
    ++programs_mutated;
  }
  return programs_mutated;
}

}  // namespace

TEST_CASE("mutants of lowered programs: no false accept, proof and checker agree") {
  testing::mutation_report sum;
  const int mutants = rankc::test::plants_all() ? 100 : 20;
  CHECK(judge_mutants(mutants, mutants / 2, sum) == 24);
  MESSAGE(testing::to_text(sum));
  testing::expect_sound_and_telling(sum);
}

TEST_CASE("twenty thousand mutants of lowered programs" * doctest::skip()) {
  testing::mutation_report sum;
  CHECK(judge_mutants(1000, 500, sum) == 24);
  MESSAGE(testing::to_text(sum));
  testing::expect_sound_and_telling(sum);
}

}  // namespace proof_test
