// SPDX-License-Identifier: Apache-2.0
// Each layer of a stage is called with what it takes: its parameters, what the microbatch has in memory, and what the
// rank has. The ops of the proof and the text of the calls are both made of this.
#include <stdexcept>

#include "passes.hpp"

namespace rankc::codegen {

const actual& layer_call::operator[](formal f) const {
  const auto at = std::find_if(given.begin(), given.end(), [&](const actual& a) { return a.as == f; });
  if (at == given.end()) throw std::logic_error("a layer's function uses what it is not given");
  return *at;
}

namespace {

class binder {
 public:
  binder(const lowered& l, const pipeline_rank& r, const stage_plan& s, int layer, phase p)
      : l_(l), r_(r), s_(s), use_(s.layers[layer]), body_(l.bodies[use_.kind]), layer_(layer),
        last_(static_cast<int>(s.layers.size()) - 1), takes_(shape_of(body_, p)) {
    call_.layer = layer;
  }

  layer_call run() {
    give(takes_.weights, {formal::weights, source::parameters});
    give(takes_.gradients, {formal::gradients, source::parameters});
    give(takes_.saved, {formal::saved, source::slot, layer_, kept::saved});
    give(takes_.work, {formal::work, source::rank});
    for (int t : takes_.ropes)
      give(true, {formal::rope, source::rank, static_cast<int>(r_.arena.find_rope(body_.ropes[static_cast<std::size_t>(t)]))});
    give(takes_.ids, {formal::ids, source::rank});
    give(takes_.targets, {formal::targets, source::rank});
    give(takes_.x, activation(formal::x, layer_ - 1));
    give(takes_.y, activation(formal::y, layer_));
    give(takes_.loss, {formal::loss, source::rank});
    give(takes_.dy, gradient(formal::dy, layer_));
    give(takes_.dx, gradient(formal::dx, layer_ - 1));
    give(takes_.accumulate, {formal::accumulate, source::adds});
    give(takes_.accumulate_shared, {formal::accumulate_shared, use_.adds_to_shared ? source::always : source::adds});
    return std::move(call_);
  }

 private:
  void give(bool is_taken, const actual& a) {
    if (is_taken) call_.given.push_back(a);
  }
  /// What the layer hands on, or the stage before or after it does.
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
  const stage_plan& s_;
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
          r.arena.ropes.push_back({wanted, 0, static_cast<std::size_t>(wanted.positions) * wanted.dim * l.wide_bytes()});
}

void bind_stage(const lowered& l, pipeline_rank& r, stage_plan& s) {
  for (int layer = 0; layer < static_cast<int>(s.layers.size()); ++layer) {
    const body& b = l.bodies[s.layers[layer].kind];
    for (int p = 0; p < n_phases; ++p) s.calls[p].push_back(binder(l, r, s, layer, static_cast<phase>(p)).run());
    if (b.saved_bytes) s.members.push_back({kept::saved, layer});
    if (layer + 1 < static_cast<int>(s.layers.size())) {
      s.members.push_back({kept::output, layer});
      if (l.splits_backward()) s.members.push_back({kept::output_gradient, layer});
    }
    r.reads_tokens |= b.uses(phase::forward, space::tokens);
    r.reads_targets |= b.uses(phase::forward, space::targets);
  }
}

}  // namespace

bool sums_into_shared(const body& b, const node& n) {
  bool shared = false;
  n.each_write([&](const port_use& u) {
    const value& v = b.values[u.at.value];
    shared |= v.where == space::gradient && b.parameters[v.of].shared;
  });
  return shared;
}

function_shape shape_of(const body& b, phase p) {
  auto uses = [&](space s) { return b.uses(p, s); };
  function_shape f{uses(space::weight), uses(space::gradient), uses(space::saved), uses(space::temp), uses(space::x), uses(space::y),
                   uses(space::dy), uses(space::dx), uses(space::tokens), uses(space::targets), uses(space::loss), false, false, {}};
  for (const value& v : b.values)
    if (v.where == space::rope && b.touches(p, v)) f.ropes.push_back(v.of);
  for (const node& n : b.calls(p)) {
    if (n.accumulate != accumulation::after_first) continue;
    (sums_into_shared(b, n) ? f.accumulate_shared : f.accumulate) = true;
  }
  return f;
}

void bind_layers(lowered& l) {
  for (pipeline_rank& r : l.ranks) {
    find_ropes(l, r);
    for (stage_plan& s : r.stages) bind_stage(l, r, s);
  }
}

}  // namespace rankc::codegen
