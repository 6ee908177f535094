// SPDX-License-Identifier: Apache-2.0
// Draws dims, schedules and stages for a model: most fit it, a few percent do not.
#include "plan.hpp"

#include <algorithm>
#include <numeric>

namespace fuzz {

namespace {

/// The greatest common divisor of all dims that tp shards, in units.
int tp_divisor(const model& m) {
  int g = 0;
  for (const entry& e : m.entries)
    for (const parameter& p : e.layer.parameters)
      for (const dim& s : p.shape)
        if (!p.sharded_by.empty() && s.name == p.sharded_by) g = std::gcd(g, s.count());
  return g;
}

/// Common divisors over all layers with experts, for the degrees of ep, of tp if ep is 1, and of tp in any
/// case; 0: no layer has them.
struct expert_divisors {
  int count = 0, ffn = 0, shared = 0;
};
expert_divisors expert_divisors_of(const model& m) {
  expert_divisors g;
  for (const entry& e : m.entries)
    for (const step& s : e.layer.steps)
      if (s.kind == step_kind::experts)
        g = {std::gcd(g.count, s.with.count), std::gcd(g.ffn, s.with.ffn),
             std::gcd(g.shared, s.with.shared_ffn)};
  return g;
}

/// The most stages that the layers fill; embedding and head may have a stage each.
int most_stages(const model& m) { return m.blocks() > 0 ? m.blocks() + 2 : 1; }

/// Whether the model's sizes divide into the shards, and its layers fill the stages.
bool fits(const plan& p, const parallel_dims& d) {
  const bool cuts_sequences =
      p.recipe.seq % ((d.cp > 1 ? 2 * d.cp : 1) * (d.sequence_parallel ? d.tp : 1)) != 0;
  const expert_divisors experts = expert_divisors_of(p.model);
  if (d.ep == 1 ? experts.ffn % d.tp != 0 : experts.count % d.ep != 0 || expert_region(d) % d.ep != 0)
    return false;
  return std::gcd(tp_divisor(p.model), experts.shared) % d.tp == 0 &&
         p.recipe.global_batch % (d.dp_replicate * d.dp_shard) == 0 && d.pp <= most_stages(p.model) &&
         !cuts_sequences;
}

parallel_dims draw_dims(draws& d, const plan& p) {
  const int least = d.chance(92) ? 1 : 9, most = least == 1 ? 8 : 32;
  const bool must_fit = d.chance(94);
  parallel_dims x;
  for (int tries = 0; tries < 100; ++tries) {
    parallel_dims wanted;
    wanted.dp_replicate = d.one_of({1, 1, 1, 2, 2, 3, 4});
    wanted.dp_shard = d.one_of({1, 1, 1, 1, 2, 2, 3, 4});
    wanted.reshard =
        d.one_of({reshard::standard, reshard::after_layer, reshard::after_stage, reshard::after_step});
    wanted.prefetch = d.one_of({0, 1, 1, 2});
    wanted.tp = d.one_of({1, 1, 2, 2, 2, 3, 4, 6});
    wanted.pp = d.one_of({1, 1, 2, 2, 2, 3, 4, 5});
    wanted.cp = d.one_of({1, 1, 1, 1, 1, 2, 2, 3});
    if (wanted.cp > 1 && d.chance(60)) {
      if (d.chance(50)) wanted.ulysses = wanted.cp;
      else wanted.cp_attention = cp_attention::ring;
    }
    // Such ranks round parts of tensors, with scales of the parts.
    if (p.rounded) wanted.tp = wanted.cp = wanted.ulysses = 1;
    wanted.world = wanted.dp_replicate * wanted.dp_shard * wanted.cp * wanted.tp * wanted.pp;
    wanted.sequence_parallel = d.chance(wanted.tp > 1 ? 50 : 1);
    if (!p.rounded && expert_divisors_of(p.model).count > 1 && d.chance(60)) {
      wanted.ep = d.one_of({2, 2, 3, 4});
      if (must_fit) wanted.sequence_parallel = wanted.tp > 1;
      const int layout = d.below(100);
      if (layout < 30) wanted.expert_layout = expert_layout::folded_over_replicas;
      else if (layout < 55) {
        wanted.expert_layout = expert_layout::independent;
        wanted.world *= wanted.ep;
      }
    }
    if (wanted.world < least || wanted.world > most || (must_fit && !fits(p, wanted))) continue;
    x = wanted;
    break;
  }
  if (d.chance(10)) *d.one_of({&x.dp_replicate, &x.dp_shard, &x.tp, &x.pp}) = infer;
  if (d.chance(2)) *d.one_of({&x.world, &x.cp, &x.dp_shard, &x.ep, &x.tp, &x.pp}) = d.between(0, 5);
  return x;
}

int draw_microbatches(draws& d, const plan& p, int dp) {
  if (d.chance(3)) return d.between(0, 9);
  std::vector<int> fitting{1};
  for (int m = 2; m <= 12; ++m)
    if (p.recipe.global_batch % (m * dp) == 0) fitting.push_back(m);
  return d.one_in(fitting);
}

schedule_choice draw_schedule(draws& d, const plan& p) {
  const parallel_dims dims = resolve(p.dims);
  const int pp = std::clamp(dims.pp, 1, 8), most = most_stages(p.model);
  const bool must_fit = d.chance(96);
  schedule_choice c;
  for (int tries = 0; tries < 100; ++tries) {
    c.by = static_cast<order>(d.below(n_orders - 1));
    c.stages_per_rank = stages_per_rank(c.by, d.one_of({1, 2, 2, 3}));
    c.inference =
        (c.by == order::looped_bfs || c.by == order::dual_pipe || c.by == order::dual_pipe_v) && d.chance(20);
    c.microbatches = draw_microbatches(d, p, std::max(1, dims.dp_replicate * dims.dp_shard));
    const int stages = c.by == order::dual_pipe ? pp : pp * c.stages_per_rank;
    if (!must_fit || (stages <= most && (c.by != order::dual_pipe || c.microbatches % 2 + pp % 2 == 0)))
      break;
    c = {.microbatches = c.microbatches};
  }
  if (!d.chance(16)) return c;
  const fuzz::schedule from = make_schedule(c, pp);
  if (from.emitted.actions.empty()) return c;
  const bool is_own = d.chance(60) && most >= pp;
  c.text = is_own ? draw_own_text(d, pp, d.between(pp, std::min(most, 2 * pp + 1)), c.microbatches)
                  : draw_text(d, from);
  c.by = order::text;
  return c;
}

/// The blocks of each stage: at least one, except on the first and the last; rarely one block too few or too
/// many in all.
std::vector<int> draw_stage_layers(draws& d, int blocks, int stages) {
  std::vector<int> out(static_cast<std::size_t>(stages), 1);
  int missing = stages - blocks;  // if each stage had one
  for (int* end : {&out.back(), &out.front()})
    if (stages > 1 && (missing > 0 || d.chance(25))) {
      *end = 0;
      --missing;
    }
  for (int left = (d.chance(4) ? d.between(-1, 1) : 0) - missing; left > 0; --left)
    ++out[static_cast<std::size_t>(d.below(stages))];
  return out;
}

/// Mostly those kinds of recomputation for which the repeated layers have ops.
recomputation draw_recomputation(draws& d, const plan& p) {
  const bool must_fit = d.chance(96);
  if (must_fit && (p.schedule.inference || p.model.blocks() == 0)) return {};
  const auto has = [&](std::initializer_list<step_kind> kinds) {
    bool any = !must_fit;
    for (const entry& e : p.model.entries)
      for (const step& s : e.layer.steps)
        any |= e.repeated && std::find(kinds.begin(), kinds.end(), s.kind) != kinds.end();
    return any;
  };
  recomputation r{.full = d.chance(50)};
  if (!r.full || !must_fit) {
    r.attention = d.chance(60) && has({step_kind::attention});
    r.activations = d.chance(60) && has({step_kind::gelu, step_kind::swiglu, step_kind::mul, step_kind::scale,
                                         step_kind::sigmoid, step_kind::softmax});
    r.norms = d.chance(60) && has({step_kind::layer_norm, step_kind::rms_norm, step_kind::head_norm});
  }
  if (r.any() || !must_fit)
    r.every = must_fit ? d.between(1, std::min(3, p.model.blocks())) : d.between(-1, 9);
  return r;
}

}  // namespace

void draw_layout(plan& p) {
  draws d(p.seed, p.index, "layout");
  p.dims = draw_dims(d, p);
  p.schedule = draw_schedule(d, p);
  const int pp = resolve(p.dims).pp, stages = pp >= 1 ? make_schedule(p.schedule, pp).emitted.stages() : 0;
  if (stages > 0 && p.model.blocks() > 0 && stages <= most_stages(p.model) && d.chance(30))
    p.stage_layers = draw_stage_layers(d, p.model.blocks(), stages);
  draws of_backward(p.seed, p.index, "recomputation");
  if (of_backward.chance(40)) p.recipe.recompute = draw_recomputation(of_backward, p);
}

}  // namespace fuzz
