// SPDX-License-Identifier: Apache-2.0
#include "check_lowered.hpp"

#include <doctest/doctest.h>

#include <rankc/codegen/certificate.hpp>
#include <rankc/codegen/equivalence.hpp>
#include <rankc/codegen/lowered.hpp>
#include <rankc/codegen/prove.hpp>
#include <rankc/codegen/verify.hpp>
#include <rankc/memory/memory.hpp>

#include <utility>
#include <vector>

#include "../some_of.hpp"

using namespace rankc::codegen;

namespace {

void check_program(const program& p, const rankc::plan_data& plan, bool certifies) {
  const verdict proof = prove(p);
  REQUIRE_MESSAGE(proof.ok, (proof.reasons.empty() ? "" : proof.reasons.front()));
  const equivalence same = check_equivalence(p, proof, specify(plan));
  CHECK_MESSAGE(same.holds, (same.reasons.empty() ? "" : same.reasons.front()));
  if (!certifies) return;
  const std::string text = certificate({{p, proof}}, specify(plan));
  CHECK(verify(text) == "");
  const certified read = read_certificate(text);
  CHECK(check_equivalence(read.steps.at(0).program, read.steps[0].verdict, read.model).holds);
}

/// Checks the programs of plan number n, for the targets and types that `takes` selects for it.
int check_plan(const rankc::plan_data& plan, std::size_t n) {
  CAPTURE(plan.name);
  const std::vector<std::pair<target, dtype>> all{
      {target::host, dtype::f64}, {target::cuda, dtype::f32}, {target::cuda, dtype::bf16}};
  int programs = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!rankc::test::takes(n + i)) continue;
    const auto& [to, type] = all[i];
    const lowered l = lower(plan, type, to);
    std::vector<kept_state> steps;
    for (const program& p : {expand_train(l), expand_evaluate(l)}) {
      check_program(p, plan, to == target::host);
      steps.push_back(kept_by(p));
      ++programs;
    }
    const equivalence together = check_steps(steps, specify(plan));
    CHECK_MESSAGE(together.holds, (together.reasons.empty() ? "" : together.reasons.front()));
    check_arenas(l);
  }
  return programs;
}

rankc::precision precision_of(dtype type) {
  if (type == dtype::f64) return rankc::f64;
  return type == dtype::f32 ? rankc::f32 : rankc::bf16;
}

}  // namespace

void check_arenas(const lowered& l) {
  const auto setting = rankc::lowering::setting_of(*l.plan, precision_of(l.type), l.target);
  const auto memory =
      rankc::lowering::memory_of(*l.plan, rankc::lowering::lower_layers(*l.plan, setting), setting);
  REQUIRE(memory.size() == l.ranks.size());
  for (std::size_t r = 0; r < memory.size(); ++r) CHECK(memory[r].arena == l.ranks[r].arena.bytes);
}

int check_lowered(const std::vector<rankc::plan_data>& plans) {
  int programs = 0;
  for (std::size_t n = 0; n < plans.size(); ++n) programs += check_plan(plans[n], n);
  return programs;
}

int lowered_programs_of(int plans) { return plans * (rankc::test::plants_all() ? 6 : 2); }
