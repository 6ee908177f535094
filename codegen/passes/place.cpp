// SPDX-License-Identifier: Apache-2.0
// Places every byte of a rank's arena: regions of parameters, tables, ids, sums, pools of a microbatch's
// values, and workspaces.
#include <rankc/schedule/colour.hpp>
#include <rankc/memory/opened.hpp>

#include <algorithm>
#include <set>

#include "lanes.hpp"
#include "passes.hpp"

namespace rankc::codegen {

namespace {

/// A value that crosses to another rank takes the place that has been free longest, so that no message waits
/// for another.
int place_in_turn(std::vector<placed_value*>& values) {
  std::vector<buffer_use> uses;
  for (placed_value* v : values) uses.push_back({v->first, v->last, &v->place});
  return colour(uses);
}

/// A value that stays on the rank takes the first free place, so that microbatches have few different slots.
int place_first(std::vector<placed_value*>& values) {
  std::stable_sort(values.begin(), values.end(),
                   [](const placed_value* a, const placed_value* b) { return a->first < b->first; });
  std::set<int> free;
  std::multimap<int, int> taken;  // places, by the action after which they are free
  int count = 0;
  for (placed_value* v : values) {
    while (!taken.empty() && taken.begin()->first < v->first) {
      free.insert(taken.begin()->second);
      taken.erase(taken.begin());
    }
    v->place = free.empty() ? count++ : free.extract(free.begin()).value();
    taken.emplace(v->last, v->place);
  }
  return count;
}

/// Assigns the places of a pool. It needs as many as the largest number of its values that are live at once.
void fill_pool(pool& p, int index, step& s) {
  std::vector<placed_value*> values;
  for (placed_value& v : s.values)
    if (v.pool == index) values.push_back(&v);
  p.count = std::max(p.count, p.what == kept::activation ? place_in_turn(values) : place_first(values));
}

class arena {
 public:
  arena(const lowered& l, pipeline_rank& r) : l_(l), r_(r), a_(r.arena) {}

  void run() {
    const plan_data& plan = *l_.plan;
    const optimizer_state kept = l_.state();
    const std::size_t trained = r_.trained_elements;
    a_.weights = take(l_.weight_elements(r_) * kept.weight);
    if (l_.trains()) a_.gradients = take(trained * l_.wide_bytes());
    if (kept.moments > 0) a_.first_moment = take(trained * kept.moment);
    if (kept.moments > 1) a_.second_moment = take(trained * kept.moment);
    if (kept.working_copy) a_.working_copy = take(r_.parameter_elements * l_.real_bytes());
    if (l_.is_sharded()) {
      a_.gathered = take(r_.gathered_elements * l_.real_bytes());
      if (l_.trains()) a_.full_gradients = take(r_.summed_elements * l_.wide_bytes());
      a_.arriving = take(r_.arriving_elements * l_.wide_bytes());
    }
    for (placed_rope& rope : a_.ropes) rope.where = take(rope.bytes);
    for (placed_input& i : r_.inputs)
      if (i.read) i.where = take(bytes_in_step(plan, i.is, l_.real_bytes(), l_.wide_bytes()));
    if (a_.routers_bytes)
      a_.routers = take(a_.routers_bytes * static_cast<std::size_t>(plan.actions.microbatches));
    a_.loss = take(l_.wide_bytes());
    if (l_.trains()) a_.norm = take(l_.wide_bytes());
    place_pools();
    place_work();
    a_.bytes = at_;
  }

 private:
  std::size_t take(std::size_t bytes) {
    const std::size_t here = at_;
    at_ += aligned(bytes);
    return here;
  }

  void place_pools() {
    for (std::size_t p = 0; p < a_.pools.size(); ++p) {
      pool& here = a_.pools[p];
      for (step* s : {&r_.train, &r_.evaluate}) fill_pool(here, static_cast<int>(p), *s);
      here.where = take(here.unit * here.count);
    }
    for (step* s : {&r_.train, &r_.evaluate}) {
      for (placed_value& v : s->values) v.where = a_.pools[v.pool].where + v.place * a_.pools[v.pool].unit;
      for (item& i : s->items)
        if (i.what == item_kind::forward || i.what == item_kind::forward_layer ||
            i.what == item_kind::backward || i.what == item_kind::backward_layer)
          i.slot = slot_of(r_.stages[i.stage], i.microbatch, *s);
    }
  }

  /// The index of a microbatch's slot in its stage.
  static int slot_of(stage_plan& stage, int microbatch, const step& s) {
    std::vector<std::size_t> members;
    for (const stage_plan::member& m : stage.members) {
      const placed_value* v = s.find(m.what, stage.stage, microbatch, m.layer);
      members.push_back(v ? v->where : 0);
    }
    const auto known = std::find(stage.slots.begin(), stage.slots.end(), members);
    const int index = static_cast<int>(known - stage.slots.begin());
    if (known == stage.slots.end()) stage.slots.push_back(std::move(members));
    return index;
  }

  void place_work() {
    for (const stage_plan& s : r_.stages) {
      if (l_.trains() && !l_.splits_backward())
        a_.chains = std::max(a_.chains, std::min(2, static_cast<int>(s.layers.size()) - 1));
      for (const layer_use& use : s.layers) {
        const body& b = l_.bodies[use.kind];
        a_.work_bytes = std::max({a_.work_bytes, b.forward_temp, b.backward_temp});
        if (&use != &s.layers.back()) a_.chain_bytes = std::max(a_.chain_bytes, b.y_bytes);
      }
    }
    for (int c = 0; c < a_.chains; ++c) a_.chain[c] = take(a_.chain_bytes);
    a_.work = take(a_.work_bytes);
    for (const step* s : {&r_.train, &r_.evaluate})
      for (const item& i : s->items) {
        if (i.on != overlap_lane || !r_.overlaps) continue;
        for (const layer_use& use : r_.stages[i.stage].layers) {
          const body& b = l_.bodies[use.kind];
          a_.work_beside_bytes =
              std::max(a_.work_beside_bytes, i.does == phase::forward ? b.forward_temp : b.backward_temp);
        }
      }
    a_.work_beside = take(a_.work_beside_bytes);
  }

  const lowered& l_;
  pipeline_rank& r_;
  arena_plan& a_;
  std::size_t at_ = 0;
};

}  // namespace

void place_arena(lowered& l) {
  for (pipeline_rank& r : l.ranks) arena(l, r).run();
}

std::size_t bytes_beside_arena(const lowered& l, const pipeline_rank& r) {
  if (l.target == target::host) return 0;
  const plan_data& plan = *l.plan;
  const bool ties = std::any_of(l.tied.begin(), l.tied.end(),
                                [&](const auto& pair) { return pair[0] == r.index || pair[1] == r.index; });
  return cuda::bytes_beside_arena(
      opened_by(layout(plan.dims), plan.actions, r.index, ties, l.rounds_reductions(),
                sums_over_batch(plan.kinds), communicates_beside_rings(plan.kinds, plan.dims)),
      cuda::edges_by::nccl, plan.dims.world);
}

}  // namespace rankc::codegen
