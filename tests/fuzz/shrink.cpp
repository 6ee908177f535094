// SPDX-License-Identifier: Apache-2.0
#include "verdict.hpp"

#include <algorithm>

namespace fuzz {

namespace {

/// Remove a step: readers of its result read its first operand.
void remove_step(layer& l, std::size_t at) {
  const int gone = static_cast<int>(at) + 1, instead = l.steps[at].in.empty() ? 0 : l.steps[at].in[0];
  const auto renumber = [&](int& v) {
    if (v == gone) v = instead;
    else if (v > gone) --v;
  };
  l.steps.erase(l.steps.begin() + static_cast<std::ptrdiff_t>(at));
  for (step& s : l.steps)
    for (int& v : s.in) renumber(v);
  renumber(l.result);
}

/// Remove parameters that no step uses.
void remove_unused(layer& l) {
  for (std::size_t w = l.parameters.size(); w-- > 0;) {
    const auto names = [&](const step& s) {
      return std::find(s.weights.begin(), s.weights.end(), static_cast<int>(w)) != s.weights.end();
    };
    if (std::any_of(l.steps.begin(), l.steps.end(), names)) continue;
    l.parameters.erase(l.parameters.begin() + static_cast<std::ptrdiff_t>(w));
    for (step& s : l.steps)
      for (int& n : s.weights) n -= n > static_cast<int>(w);
  }
}

/// Plans with one thing less, beginning with the largest removal.
std::vector<plan> smaller(const plan& p) {
  std::vector<plan> out;
  const auto with = [&](auto change) {
    plan q = p;
    if (change(q)) out.push_back(std::move(q));
  };
  for (int parallel_dims::* degree : {&parallel_dims::pp, &parallel_dims::dp_replicate,
                                      &parallel_dims::dp_shard, &parallel_dims::cp, &parallel_dims::tp})
    if (resolve(p.dims).*degree > 1 && p.schedule.by != order::text)
      with([&](plan& q) {
        q.dims = resolve(q.dims);
        q.dims.world /= q.dims.*degree * (repeats_tokens(q.dims) ? q.dims.ep : 1);
        q.dims.*degree = q.dims.ulysses = q.dims.ep = 1;
        q.stage_layers.clear();
        return true;
      });
  with([](plan& q) { return !std::exchange(q.stage_layers, {}).empty(); });
  with([](plan& q) {
    return q.schedule.by != order::gpipe && (q.schedule = {.microbatches = q.schedule.microbatches}, true);
  });
  with([](plan& q) { return q.schedule.by != order::text && std::exchange(q.schedule.microbatches, 1) > 1; });
  with([](plan& q) { return std::exchange(q.one_rank_microbatches, 1) > 1; });
  with([](plan& q) { return std::exchange(q.dims.sequence_parallel, false); });
  with([](plan& q) { return std::exchange(q.recipe.lora, {}).any(); });
  with([](plan& q) { return !std::exchange(q.recipe.frozen, {}).all().empty(); });
  with([](plan& q) { return !std::exchange(q.recipe.lora.trained, {}).all().empty(); });
  with([](plan& q) { return !(std::exchange(q.recipe.recompute, {}) == recomputation{}); });
  with([](plan& q) { return std::exchange(q.recipe.recompute.every, 1) > 1; });
  with([](plan& q) { return std::exchange(q.recipe.optimizer, adamw{}).row != &adamw::row; });
  for (std::size_t e = 1; e + 1 < p.model.entries.size(); ++e) {
    with([&](plan& q) {
      return p.model.entries.size() > 3 &&
             (q.model.entries.erase(q.model.entries.begin() + static_cast<std::ptrdiff_t>(e)), true);
    });
    with([&](plan& q) { return std::exchange(q.model.entries[e].count, 1) > 1; });
  }
  for (std::size_t e = 0; e < p.model.entries.size(); ++e)
    for (std::size_t s = p.model.entries[e].layer.steps.size(); s-- > 0;)
      with([&](plan& q) {
        remove_step(q.model.entries[e].layer, s);
        remove_unused(q.model.entries[e].layer);
        return true;
      });
  return out;
}

}  // namespace

plan shrink(const settings& with, const plan& of, const verdict& like) {
  plan best = of;
  const auto fails_alike = [&](const verdict& v) { return v.failed() && v.stage == like.stage; };
  for (bool goes_on = true; goes_on;) {
    goes_on = false;
    std::vector<plan> all = smaller(best);
    // Each has its own programs.
    for (std::size_t i = 0; i < all.size(); ++i) all[i].index = i * plans_per_model;
    const std::vector<verdict> verdicts = judge(with, all);
    const auto found = std::find_if(verdicts.begin(), verdicts.end(), fails_alike);
    if (found == verdicts.end()) break;
    best = all[static_cast<std::size_t>(found - verdicts.begin())];
    goes_on = true;
  }
  best.index = of.index;
  return best;
}

}  // namespace fuzz
