// SPDX-License-Identifier: Apache-2.0
// What a rank sums up in a step, as facts that its program is held to. They come from the plan: which actions
// the rank runs, which calls its layers make, and the placements of the typed trace; not from the items that
// lowering makes of them.
#include <rankc/ops/memory.hpp>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "contents.hpp"
#include "lanes.hpp"
#include "passes.hpp"

namespace rankc::codegen {

namespace {

/// How often the calls of a layer write the loss, or the gradient of a parameter, in one pass; those that
/// clear it apart.
int count_writes(const body& b, phase p, space where, int of, bool clears) {
  int times = 0;
  for (const node& n : b.calls(p)) {
    if (n.is(ops::clear) != clears) continue;
    const std::vector<operand> writes = writes_of(b, n);
    times += std::any_of(writes.begin(), writes.end(),
                         [&](const operand& w) { return b.at(w).where == where && b.at(w).of == of; });
  }
  return times;
}

action_kind action_of(phase p) {
  switch (p) {
    case phase::forward:
      return action_kind::F;
    case phase::backward:
      return action_kind::B;
    case phase::backward_input:
      return action_kind::I;
    default:
      return action_kind::W;
  }
}

/// How often a pipeline rank passes through a stage.
int count_passes(const action_table& t, int rank, int stage, phase p) {
  const action_kind kind = action_of(p);
  return static_cast<int>(std::count_if(t.actions.begin() + t.begin[rank],
                                        t.actions.begin() + t.begin[rank + 1],
                                        [&](const action& a) { return a.kind == kind && a.stage == stage; }));
}

}  // namespace

/// How often a rank's calls in some phases write the loss, or the gradient of a parameter of a layer.
int flattener::count_terms(const stage_plan& s, const layer_use& use, std::initializer_list<phase> phases,
                           space where, int parameter) const {
  const body& b = l_.bodies[use.kind];
  int n = 0;
  bool is_cleared = false;  // once a step: that counts as the first term
  for (phase p : phases) {
    const int passes = count_passes(l_.plan->actions, r_.index, s.stage, p);
    n += passes * count_writes(b, p, where, parameter, false);
    is_cleared |= passes > 0 && count_writes(b, p, where, parameter, true) > 0;
  }
  const bool by_another = is_cleared && use.adds_to(l_.groups[use.kind].of_parameter[parameter]);
  return n + (is_cleared && !by_another);
}

/// How often a layer's gradient of a parameter is dealt out: in each pass that sums into it.
int flattener::count_sums(const stage_plan& s, const layer_use& use, int parameter) const {
  int n = 0;
  for (const phase p : {phase::backward, phase::backward_input, phase::backward_weight})
    if (count_writes(l_.bodies[use.kind], p, space::gradient, parameter, false) > 0)
      n += count_passes(l_.plan->actions, r_.index, s.stage, p);
  return n;
}

/// The letters over the axes that a plan has. A tensor that two pipeline ranks hold is summed between them.
std::vector<sum::relation> flattener::relate(placement shards, placement dp, placement tp, bool tied,
                                             bool of_experts, const placement* experts) const {
  const auto link = [&](runtime::over o) { return find_link(r_, lane_over(o), o); };
  std::vector<sum::relation> of;
  if (weight_shards(l_.plan->dims) > 1) of.push_back({link(runtime::over::shard), shards});
  if (weight_replicas(l_.plan->dims) > 1) of.push_back({link(runtime::over::dp), dp});
  if (l_.plan->dims.tp > 1) of.push_back({link(runtime::over::tp), tp});
  if (repeats_tokens(l_.plan->dims))
    of.push_back({link(runtime::over::ep), of_experts ? placement::sharded : placement::replicated});
  if (experts)
    of.push_back({link(runtime::over::efsdp), *experts});  // behind those whose sums reach the same ranks
  if (tied) of.push_back({link(runtime::over::tied), placement::partial});
  return of;
}

bool flattener::is_tied(const placed_parameter& q) const {
  return std::any_of(l_.tied.begin(), l_.tied.end(), [&](const std::array<int, 2>& pair) {
    if (pair[0] != r_.index && pair[1] != r_.index) return false;
    const pipeline_rank& other = l_.ranks[pair[0] == r_.index ? pair[1] : pair[0]];
    return std::any_of(other.parameters.begin(), other.parameters.end(),
                       [&](const placed_parameter& o) { return o.name == q.name; });
  });
}

sum flattener::sum_of_loss() const {
  // With a space, as no parameter is named.
  sum of{sum_kind::loss, "the loss", scalar(loss, r_.arena.loss).range(), {}, 0, {}, false};
  for (const stage_plan& s : r_.stages)
    for (const layer_use& use : s.layers) of.terms += count_terms(s, use, {phase::forward}, space::loss, 0);
  const bool over_pp = l_.sums_losses_over_pp();
  if (of.terms == 0 && !over_pp) return of;
  of.over = relate(placement::partial, placement::partial, placement::replicated,
                   l_.plan->actions.bidirectional() && !over_pp);
  if (over_pp)
    of.over.push_back({find_link(r_, lane_over(runtime::over::pp), runtime::over::pp), placement::partial});
  if (over_pp && of.terms == 0) of.terms = 1;  // nothing, in a sum with what other ranks have
  return of;
}

/// Where the layers add up a gradient that is dealt out once.
byte_range flattener::collected(int parameter) const {
  for (const gathering& g : r_.gatherings)
    for (const gathering::part& p : g.trained)
      if (p.parameter == parameter) return whole(full_gradient, p).range();
  throw std::logic_error("a gradient is dealt out from nowhere");
}

/// The placement of a gradient's contributions over an axis.
static placement placement_of(bool differs, bool is_summed) {
  if (differs) return placement::sharded;
  return is_summed ? placement::partial : placement::replicated;
}

/// A parameter says over which axes the typed trace has its gradient as P, a sum that is still to be made.
sum flattener::sum_of_gradient(std::size_t parameter_index) const {
  const placed_parameter& q = r_.parameters[parameter_index];
  const placement tp = placement_of(q.as.differs_over_tp, q.as.sum_over_tp);
  const placement dp = placement_of(q.as.differs_over_replicas, q.as.sum_over_dp);
  // Where whole gradients take turns in a place, what is dealt out of it each time is a contribution to the
  // shard.
  const bool is_dealt = q.as.shards > 1;
  const bool by_turns = is_dealt && (l_.reshards() || (r_.sums_take_turns && !q.as.shared));
  const placement shards = q.as.sum_over_shards && !by_turns ? placement::dealt : placement::sharded;
  const placement* const over_efsdp = is_dealt ? &shards : nullptr;
  const bool is_of_choices = q.as.balances.any();
  sum of{is_of_choices ? sum_kind::choices : sum_kind::gradient,
         q.name,
         parameter(gradient, parameter_index).range(),
         q.as.experts ? relate(placement::sharded, dp, tp, is_tied(q), true, over_efsdp)
                      : relate(shards, dp, tp, is_tied(q)),
         0,
         {},
         !q.copy && !is_of_choices};
  if (is_dealt && !by_turns) of.collected = collected(static_cast<int>(parameter_index));
  for (int region : kept_) of.updates.push_back(parameter(region, parameter_index).range());
  for (const stage_plan& s : r_.stages)
    for (const layer_use& use : s.layers)
      for (std::size_t k = 0; k < l_.bodies[use.kind].parameters.size(); ++k)
        if (use.element(l_.groups[use.kind].of_parameter[k]) == q.element) {
          if (!by_turns)
            of.terms += count_terms(s, use, {phase::backward, phase::backward_input, phase::backward_weight},
                                    space::gradient, static_cast<int>(k));
          else of.terms += l_.reshards() ? count_sums(s, use, static_cast<int>(k)) : 1;
        }
  return of;
}

std::vector<sum> flattener::sums(bool train) const {
  std::vector<sum> all;
  if (sum of = sum_of_loss(); of.terms > 0) all.push_back(std::move(of));
  if (!train || !l_.trains()) return all;
  sum of_norm{sum_kind::norm, "gradient norm", scalar(norm, r_.arena.norm).range(), {}, 0, {}, false};
  of_norm.over = relate(placement::replicated, placement::replicated, placement::replicated, false);
  if (l_.plan->dims.pp > 1)
    of_norm.over.push_back(
        {find_link(r_, lane_over(runtime::over::pp), runtime::over::pp), placement::partial});
  for (std::size_t p = 0; p < r_.parameters.size(); ++p) {
    if (!r_.parameters[p].as.trainable) continue;
    all.push_back(sum_of_gradient(p));
    of_norm.terms += all.back().counted;
  }
  all.push_back(std::move(of_norm));
  return all;
}

}  // namespace rankc::codegen
