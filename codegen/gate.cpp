// SPDX-License-Identifier: Apache-2.0
#include <rankc/codegen/gate.hpp>

#include <fmt/format.h>

#include <rankc/codegen/equivalence.hpp>
#include <rankc/codegen/prove.hpp>
#include <rankc/codegen/text_template.hpp>
#include <rankc/runtime/failure.hpp>
#include <stdexcept>
#include <utility>

namespace rankc::codegen {
namespace {

void fit_or_throw(const lowered& l) {
  for (const pipeline_rank& r : l.ranks) {
    const std::size_t needed = r.arena.bytes + bytes_beside_arena(l, r);
    if (l.plan->machines.memory > 0 && needed > static_cast<std::size_t>(l.plan->machines.memory))
      throw std::runtime_error(fmt::format(
          "RC401: the ranks of pipeline coordinate {} need {} of {} on {}; use more tp or pp, "
          "or fewer rows per microbatch",
          r.index, readable_bytes(needed), readable_bytes(l.plan->machines.memory), name_of(l.target)));
  }
}

[[noreturn]] void refuse_model(const equivalence& e) {
  throw runtime::failure(1, "RC7904: the lowered program does not compute what the model computes: {}",
                         fmt::format("{}", fmt::join(e.reasons, "; ")));
}

gated prove_or_throw(const lowered& l) {
  const specification model = specify(*l.plan);
  const equivalence_check check = check_against(model);
  std::vector<kept_state> steps;
  gated passed;
  for (const auto expand : {expand_train, expand_evaluate}) {
    if (expand == expand_train && !l.trains()) continue;
    const program p = expand(l);
    const verdict v = prove(p);
    if (!v.ok)
      throw runtime::failure(1, "RC7903: the lowered program is not sound: {}",
                             fmt::format("{}", fmt::join(v.reasons, "; ")));
    const equivalence e = check(p, v);
    if (!e.holds && !e.has_unknown_row) refuse_model(e);
    if (e.has_unknown_row) passed.not_compared = e.reasons.front();
    steps.push_back(kept_by(p));
    for (step_hash& f : hash_calls(p)) passed.hashes.push_back(std::move(f));
    if (expand == expand_evaluate) passed.logits = find_logits(l, p);
  }
  if (const equivalence e = check_steps(steps, model); !e.holds) refuse_model(e);
  return passed;
}

}  // namespace

gated check_or_throw(const lowered& l) {
  fit_or_throw(l);
  return prove_or_throw(l);
}

}  // namespace rankc::codegen
