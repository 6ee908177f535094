// SPDX-License-Identifier: Apache-2.0
#include <rankc/codegen/intervals.hpp>

#include <algorithm>
#include <map>

#include "passes.hpp"

namespace rankc::codegen {

namespace {

/// Builds the items of one pipeline rank.
class builder {
 public:
  builder(lowered& l, pipeline_rank& r) : l_(l), plan_(*l.plan), r_(r) {
    const action_table& t = plan_.actions;
    actions_.assign(t.actions.begin() + t.begin[r.index], t.actions.begin() + t.begin[r.index + 1]);
    last_stage_ = t.stages() - 1;
  }

  void run() {
    size_stages();
    colour_buffers();
    for (std::size_t k = 0; k < actions_.size(); ++k) {
      if (k == 0) receive_for(0);
      if (k + 1 < actions_.size()) receive_for(k + 1);  // one action ahead, so that it overlaps this one
      compute(k);
      send_after(k);
    }
    finish_step();
    for (int m = 0; m < plan_.actions.microbatches; ++m) evaluate(m);
    if (holds_loss()) reduce_loss(r_.evaluate);
  }

 private:
  stage_plan& stage_of(const action& a) { return r_.stages[local(a.stage)]; }
  int local(int stage) const {
    for (std::size_t i = 0; i < r_.stages.size(); ++i)
      if (r_.stages[i].stage == stage) return static_cast<int>(i);
    return -1;
  }
  bool holds_loss() const { return local(last_stage_) >= 0; }
  bool is_last_backward(const action& a) const { return a.kind == action_kind::B && a.microbatch == last_backward_.at(a.stage); }

  void size_stages() {
    for (stage_plan& s : r_.stages) {
      for (std::size_t i = 0; i < s.layers.size(); ++i) {
        const body& b = l_.bodies[s.layers[i].kind];
        s.layers[i].saved = s.slot_bytes;
        s.slot_bytes += b.saved_bytes;
        if (i + 1 < s.layers.size()) {
          s.layers[i].output = s.slot_bytes;
          s.slot_bytes += aligned(b.y_bytes);
        }
        r_.reads_tokens |= b.forward_uses(space::tokens);
        r_.reads_targets |= b.forward_uses(space::targets);
      }
      s.boundary_bytes = s.stage > 0 ? l_.bodies[s.layers.front().kind].x_bytes : l_.bodies[s.layers.back().kind].y_bytes;
    }
  }

  /// Time is the position in the rank's actions; a message is in flight during the action before or after.
  void colour_buffers() {
    std::map<std::pair<int, int>, int> forward_at;
    std::map<int, std::vector<span_of_time>> slots, inputs, outputs, dys, dxs;
    for (std::size_t k = 0; k < actions_.size(); ++k) {
      const action& a = actions_[k];
      const int t = static_cast<int>(k);
      if (a.kind == action_kind::F) {
        forward_at[{a.stage, a.microbatch}] = t;
        outputs[a.stage].push_back({t, t + 1});
      } else {
        const int f = forward_at.at({a.stage, a.microbatch});
        slots[a.stage].push_back({f, t});
        inputs[a.stage].push_back({f - 1, t});
        dys[a.stage].push_back({t - 1, t});
        dxs[a.stage].push_back({t, t + 1});
        backward_order_[a.stage].push_back(a.microbatch);
        last_backward_[a.stage] = a.microbatch;
      }
    }
    for (stage_plan& s : r_.stages) {
      s.slots = colour_intervals(slots[s.stage]);
      if (s.stage > 0) {
        s.inputs = colour_intervals(inputs[s.stage]);
        s.dxs = colour_intervals(dxs[s.stage]);
      }
      if (s.stage < last_stage_) {
        s.outputs = colour_intervals(outputs[s.stage]);
        s.dys = colour_intervals(dys[s.stage]);
      }
      for (std::size_t i = 0; i < backward_order_[s.stage].size(); ++i) {
        item& c = colours_[{s.stage, backward_order_[s.stage][i]}];
        c.slot = slots[s.stage][i].colour;
        c.input = s.stage > 0 ? inputs[s.stage][i].colour : -1;
        c.dy = s.stage < last_stage_ ? dys[s.stage][i].colour : -1;
        c.dx = s.stage > 0 ? dxs[s.stage][i].colour : -1;
      }
      int f = 0;
      for (const action& a : actions_)
        if (a.stage == s.stage && a.kind == action_kind::F)
          colours_[{s.stage, a.microbatch}].output = s.stage < last_stage_ ? outputs[s.stage][f++].colour : -1;
    }
  }

  item base(const action& a, item_kind what) {
    item i = colours_.at({a.stage, a.microbatch});
    i.what = what;
    i.stage = local(a.stage);
    i.microbatch = a.microbatch;
    sentence s;
    s << a;
    i.name = std::string(s.view());
    return i;
  }

  item traffic(const action& a, bool sending, bool gradients, int from_stage) {
    item i = base(a, sending ? item_kind::send : item_kind::receive);
    const int to_stage = gradients ? from_stage - 1 : from_stage + 1;
    i.on = gradients ? (sending ? stream::to_prev : stream::from_next) : (sending ? stream::to_next : stream::from_prev);
    i.backward_traffic = gradients;
    i.name = std::string(gradients ? "B" : "F") + std::to_string(a.microbatch) + ": stage " + std::to_string(from_stage) + " -> " +
             std::to_string(to_stage);
    i.message = l_.message(i.name, stage_of(a).boundary_bytes);
    return i;
  }

  void receive_for(std::size_t k) {
    const action& a = actions_[k];
    if (a.kind == action_kind::F && a.stage > 0) r_.train.push_back(traffic(a, false, false, a.stage - 1));
    if (a.kind != action_kind::F && a.stage < last_stage_) r_.train.push_back(traffic(a, false, true, a.stage + 1));
  }
  void send_after(std::size_t k) {
    const action& a = actions_[k];
    if (a.kind == action_kind::F && a.stage < last_stage_) r_.train.push_back(traffic(a, true, false, a.stage));
    if (a.kind != action_kind::F && a.stage > 0) r_.train.push_back(traffic(a, true, true, a.stage));
  }

  void compute(std::size_t k) {
    const action& a = actions_[k];
    item i = base(a, a.kind == action_kind::F ? item_kind::forward : item_kind::backward);
    i.first = a.kind == action_kind::F ? a.microbatch == first_forward(a.stage) : a.microbatch == backward_order_.at(a.stage)[0];
    const bool reduces = std::any_of(r_.buckets.begin(), r_.buckets.end(), [&](const bucket& b) {
      return b.after_layer >= 0 && r_.stages[b.stage].stage == a.stage;
    });
    if (a.kind == action_kind::F || !reduces || !is_last_backward(a)) {
      r_.train.push_back(i);
      return;
    }
    i.what = item_kind::backward_layer;
    for (int layer = static_cast<int>(stage_of(a).layers.size()) - 1; layer >= 0; --layer) {
      i.layer = layer;
      r_.train.push_back(i);
      for (std::size_t b = 0; b < r_.buckets.size(); ++b)
        if (r_.buckets[b].after_layer == layer && r_.buckets[b].stage == i.stage) reduce(static_cast<int>(b), role::dp);
    }
  }
  int first_forward(int stage) const {
    for (const action& a : actions_)
      if (a.stage == stage && a.kind == action_kind::F) return a.microbatch;
    return 0;
  }

  void reduce(int b, role over) {
    const bucket& k = r_.buckets[b];
    item i;
    i.what = item_kind::reduce;
    i.on = over == role::tp ? stream::compute : stream::reduce;
    i.bucket = b;
    i.over = over;
    i.name = "gradients of " + k.name + (over == role::tp ? " over tp" : over == role::dp ? " over dp" : " between first and last stage");
    if (k.after_layer < 0 && !k.tied) i.name += " on pipeline rank " + std::to_string(r_.index);
    i.message = l_.message(i.name, k.count * l_.wide_bytes());
    r_.train.push_back(i);
  }

  /// What is left after the last microbatch: reductions, the global norm, the optimizer.
  void finish_step() {
    for (std::size_t b = 0; b < r_.buckets.size(); ++b) {
      if (r_.buckets[b].after_layer >= 0) continue;
      if (r_.buckets[b].over_tp) reduce(static_cast<int>(b), role::tp);
      if (r_.buckets[b].over_dp) reduce(static_cast<int>(b), role::dp);
      if (r_.buckets[b].tied) reduce(static_cast<int>(b), role::tied);
    }
    if (holds_loss()) reduce_loss(r_.train);
    item i;
    auto norm = [&](item_kind what, const char* name, role over, bool sharded) {
      i.what = what;
      i.name = name;
      i.over = over;
      i.sharded = sharded;
      i.first = what == item_kind::squares && (sharded || r_.squares_sharded.empty());
      i.message = what == item_kind::reduce_norm ? l_.message(name, l_.wide_bytes()) : -1;
      r_.train.push_back(i);
    };
    if (plan_.dims.tp > 1) {
      norm(item_kind::squares, "norm of sharded gradients", role::tp, true);
      norm(item_kind::reduce_norm, "gradient norm over tp", role::tp, false);
    }
    norm(item_kind::squares, "norm of whole gradients", role::tp, false);
    if (plan_.dims.pp > 1) norm(item_kind::reduce_norm, "gradient norm over pp", role::pp, false);
    i = {};
    i.what = item_kind::update;
    i.name = "optimizer";
    r_.train.push_back(i);
  }

  void reduce_loss(std::vector<item>& into) {
    if (plan_.dims.dp_replicate == 1) return;
    item i;
    i.what = item_kind::reduce_loss;
    i.on = stream::reduce;  // as all that uses the dp communicator
    i.over = role::dp;
    i.name = "loss over dp";
    i.message = l_.message(i.name, l_.wide_bytes());
    into.push_back(i);
  }

  /// Forward of one microbatch without a backward: slot 0, buffers in turn.
  void evaluate(int m) {
    for (stage_plan& s : r_.stages) {
      const action a{action_kind::F, s.stage, m};
      auto push = [&](item i) {
        i.slot = 0;
        i.input = s.inputs ? m % s.inputs : -1;
        i.output = s.outputs ? m % s.outputs : -1;
        i.first = m == 0;
        r_.evaluate.push_back(i);
      };
      if (s.stage > 0) push(traffic(a, false, false, s.stage - 1));
      push(base(a, item_kind::forward));
      if (s.stage < last_stage_) push(traffic(a, true, false, s.stage));
    }
  }

  lowered& l_;
  const plan_data& plan_;
  pipeline_rank& r_;
  std::vector<action> actions_;
  int last_stage_ = 0;
  std::map<std::pair<int, int>, item> colours_;  // of (stage, microbatch)
  std::map<int, std::vector<int>> backward_order_;
  std::map<int, int> last_backward_;
};

}  // namespace

void schedule_items(lowered& l) {
  for (pipeline_rank& r : l.ranks) builder(l, r).run();
}

}  // namespace rankc::codegen
