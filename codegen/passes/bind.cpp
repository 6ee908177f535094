// SPDX-License-Identifier: Apache-2.0
// Finds the arguments of each layer's function: parameters, the microbatch's values and the rank's values.
// The ops of the proof and the text of the calls are both made from them.
#include <stdexcept>

#include "lanes.hpp"
#include "passes.hpp"

namespace rankc::codegen {

const actual& layer_call::operator[](formal f) const {
  const auto at = std::find_if(given.begin(), given.end(), [&](const actual& a) { return a.as == f; });
  if (at == given.end()) throw std::logic_error("a layer's function uses what it is not given");
  return *at;
}

const actual& layer_call::flag(int flag) const {
  const auto at = std::find_if(given.begin(), given.end(), [&](const actual& a) {
    return a.index == flag &&
           a.as == (flag == flag_of_others ? formal::accumulate : formal::accumulate_apart);
  });
  if (at == given.end()) throw std::logic_error("a layer's function sums and is not told from when on");
  return *at;
}

namespace {

class binder {
 public:
  binder(const lowered& l, const pipeline_rank& r, const stage_plan& s, int layer, phase p)
      : l_(l),
        r_(r),
        use_(s.layers[layer]),
        body_(l.bodies[use_.kind]),
        layer_(layer),
        last_(static_cast<int>(s.layers.size()) - 1),
        takes_(shape_of(body_, p)) {
    call_.layer = layer;
  }

  layer_call run(phase p) {
    const bool of_losses = p == phase::forward;
    give(takes_.during, {formal::during, source::rank});
    give(takes_.beside, {formal::beside, source::rank});
    give(takes_.weights, {formal::weights, source::parameters});
    give(takes_.gradients, {formal::gradients, source::parameters});
    give(takes_.saved, {formal::saved, source::slot, layer_, kept::saved});
    give(takes_.halfway, {formal::halfway, source::slot, layer_, kept::halfway});
    give(takes_.work, {formal::work, source::rank});
    for (int t : takes_.ropes)
      give(true, {formal::rope, source::rank,
                  static_cast<int>(r_.arena.find_rope(body_.ropes[static_cast<std::size_t>(t)]))});
    for (int i : takes_.inputs) give(true, {formal::input, source::rank, i});
    give(takes_.x, activation(formal::x, layer_ - 1));
    give(takes_.y, activation(formal::y, layer_));
    give(takes_.loss, {formal::loss, source::rank});
    give(takes_.routers, {formal::routers, source::rank});
    give(takes_.dy, gradient(formal::dy, layer_));
    give(takes_.dx, gradient(formal::dx, layer_ - 1));
    give(takes_.accumulate,
         {formal::accumulate,
          of_losses && use_.adds_to_loss ? source::always : source_of_sums(flag_of_others), flag_of_others});
    for (int f : takes_.accumulate_apart) give(true, {formal::accumulate_apart, source_of(f), f});
    return std::move(call_);
  }

 private:
  source source_of(int flag) const {
    const bool takes_turns = l_.reshards() && weight_shards(l_.plan->dims) > 1;
    if (flag != flag_of_experts && !takes_turns &&
        use_.adds_to(l_.groups[use_.kind].of_parameter[static_cast<std::size_t>(flag)]))
      return source::always;
    return source_of_sums(flag);
  }
  /// `adds` for gradients that are reduce-scattered: with resharding they start afresh in each microbatch.
  /// `adds_kept` for gradients that the rank sums whole over the microbatches.
  source source_of_sums(int flag) const {
    const parallel_dims& d = l_.plan->dims;
    const bool is_dealt =
        flag == flag_of_experts ? expert_weight_shards(d) > 1 : !l_.is_sharded() || weight_shards(d) > 1;
    return is_dealt ? source::adds : source::adds_kept;
  }
  void give(bool is_taken, const actual& a) {
    if (is_taken) call_.given.push_back(a);
  }
  /// The input or output of a layer: in a slot, or at the boundary of the stage.
  actual activation(formal as, int of_layer) const {
    if (of_layer < 0 || of_layer == last_) return {as, source::boundary, of_layer == last_, kept::activation};
    return {as, source::slot, of_layer, kept::output};
  }
  actual gradient(formal as, int of_layer) const {
    if (of_layer < 0 || of_layer == last_) return {as, source::boundary, of_layer == last_, kept::gradient};
    if (l_.splits_backward()) return {as, source::slot, of_layer, kept::output_gradient};
    return {as, source::chain, of_layer % 2};
  }

  const lowered& l_;
  const pipeline_rank& r_;
  const layer_use& use_;
  const body& body_;
  const int layer_, last_;
  const function_shape takes_;
  layer_call call_;
};

void find_ropes(const lowered& l, pipeline_rank& r) {
  for (const stage_plan& s : r.stages)
    for (const layer_use& use : s.layers)
      for (const rope_use& wanted : l.bodies[use.kind].ropes)
        if (r.arena.find_rope(wanted) == r.arena.ropes.size())
          r.arena.ropes.push_back(
              {wanted, 0, static_cast<std::size_t>(wanted.positions) * wanted.dim * l.wide_bytes()});
}

/// The layer whose forward runs first starts the sum of a rank's losses.
void begin_losses(const lowered& l, pipeline_rank& r) {
  std::vector<stage_plan*> order;  // by their first forwards
  const action_table& t = l.plan->actions;
  for (int i = t.begin[r.index]; i < t.begin[r.index + 1]; ++i)
    for (stage_plan& s : r.stages)
      if (t.actions[i].kind == action_kind::F && t.actions[i].stage == s.stage &&
          std::find(order.begin(), order.end(), &s) == order.end())
        order.push_back(&s);
  bool has_begun = false;
  for (stage_plan* s : order)
    for (layer_use& use : s->layers) {
      use.adds_to_loss = has_begun;
      has_begun |= l.bodies[use.kind].uses(phase::forward, space::loss);
    }
}

void bind_stage(const lowered& l, pipeline_rank& r, stage_plan& s) {
  for (int layer = 0; layer < static_cast<int>(s.layers.size()); ++layer) {
    const body& b = l.bodies[s.layers[layer].kind];
    for (int p = 0; p < n_phases; ++p)
      s.calls[p].push_back(binder(l, r, s, layer, static_cast<phase>(p)).run(static_cast<phase>(p)));
    if (b.saved_bytes) s.members.push_back({kept::saved, layer});
    if (b.halfway_bytes) s.members.push_back({kept::halfway, layer});
    if (layer + 1 < static_cast<int>(s.layers.size())) {
      s.members.push_back({kept::output, layer});
      if (l.splits_backward()) s.members.push_back({kept::output_gradient, layer});
    }
    for (std::size_t i = 0; i < r.inputs.size(); ++i)
      r.inputs[i].read |= b.reads_input(phase::forward, static_cast<int>(i));
    r.arena.routers_bytes = std::max(r.arena.routers_bytes, b.routers_bytes);
  }
}

}  // namespace

bool repeats_first(const lowered& l, const stage_plan& s) {
  return !l.bodies[s.layers.back().kind].calls(phase::recompute).empty();
}

static std::vector<phase> after_repeating(phase p) {
  if (p != phase::backward && p != phase::backward_input) return {p};
  return {phase::recompute, p};
}
std::vector<phase> phases_of(const stage_plan& s, phase p, int layer) {
  const bool is_last = layer + 1 == static_cast<int>(s.layers.size());
  if (is_last) return {p};
  if (p == phase::recompute) return {};
  return after_repeating(p);
}
std::vector<phase> phases_of(const stage_plan& s, const item& i, int layer) {
  return i.on == compute_lane ? phases_of(s, i.does, layer) : after_repeating(i.does);
}

/// True if gradients of experts need a flag of their own: the experts are kept whole on their ranks, or they
/// are the only sharded parameters of the layer.
static bool is_summed_apart(const body& b, const layer_parameter& experts) {
  return experts.shards == 1 ||
         std::none_of(b.parameters.begin(), b.parameters.end(),
                      [](const layer_parameter& p) { return !p.experts && p.shards > 1; });
}

int find_flag(const body& b, const node& n) {
  int flag = flag_of_others;
  n.each_write([&](const port_use& u) {
    const value& v = b.values[u.at.value];
    if (v.where != space::gradient) return;
    if (b.parameters[v.of].shared) flag = v.of;
    else if (b.parameters[v.of].experts && is_summed_apart(b, b.parameters[v.of])) flag = flag_of_experts;
  });
  return flag;
}

function_shape shape_of(const body& b, phase p) {
  auto uses = [&](space s) { return b.uses(p, s); };
  function_shape f{uses(space::weight),
                   uses(space::gradient),
                   uses(space::saved),
                   uses(space::halfway),
                   uses(space::temp),
                   uses(space::x),
                   uses(space::y),
                   uses(space::dy),
                   uses(space::dx),
                   uses(space::loss),
                   uses(space::routers),
                   false,
                   {},
                   {},
                   {}};
  for (const value& v : b.values)
    if (v.where == space::rope && b.touches(p, v)) f.ropes.push_back(v.of);
  for (const value& v : b.values)
    if (v.where == space::input && b.touches(p, v)) f.inputs.push_back(v.of);
  std::sort(f.inputs.begin(), f.inputs.end());
  for (const node& n : b.calls(p)) {
    f.beside |= n.is_beside();
    f.during |= n.only != in_step::any;
    if (n.accumulate != accumulation::after_first) continue;
    const int flag = find_flag(b, n);
    if (flag == flag_of_others) f.accumulate = true;
    else if (std::find(f.accumulate_apart.begin(), f.accumulate_apart.end(), flag) ==
             f.accumulate_apart.end())
      f.accumulate_apart.push_back(flag);
  }
  return f;
}

void bind_layers(lowered& l) {
  for (pipeline_rank& r : l.ranks) {
    begin_losses(l, r);
    find_ropes(l, r);
    for (const named_input& i : l.plan->inputs) r.inputs.push_back({i});
    for (stage_plan& s : r.stages) bind_stage(l, r, s);
  }
}

}  // namespace rankc::codegen
