// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>
#include <utility>

#include <rankc/codegen/intervals.hpp>

#include "buffers.hpp"

namespace rankc::codegen {

namespace {

std::string name_of(const action& a) {
  sentence s;
  s << a;
  return std::string(s.view());
}

phase phase_of(action_kind k) {
  switch (k) {
    case action_kind::F: return phase::forward;
    case action_kind::B: return phase::backward;
    case action_kind::I: return phase::backward_input;
    case action_kind::W: return phase::backward_weight;
  }
  return phase::forward;
}

void size_stages(lowered& l, pipeline_rank& r) {
  for (stage_plan& s : r.stages) {
    for (std::size_t i = 0; i < s.layers.size(); ++i) {
      const body& b = l.bodies[s.layers[i].kind];
      const auto take = [&](std::size_t bytes) { return std::exchange(s.slot_bytes, s.slot_bytes + aligned(bytes)); };
      s.layers[i].saved = take(b.saved_bytes);
      if (i + 1 < s.layers.size()) {
        s.layers[i].output = take(b.y_bytes);
        if (l.splits_backward()) s.layers[i].output_gradient = take(b.y_bytes);
      }
      r.reads_tokens |= b.uses(phase::forward, space::tokens);
      r.reads_targets |= b.uses(phase::forward, space::targets);
    }
    s.boundary_bytes = s.stage > 0 ? l.bodies[s.layers.front().kind].x_bytes : l.bodies[s.layers.back().kind].y_bytes;
  }
}

/// Builds the items of one pipeline rank, of a step or of an evaluation.
class builder {
 public:
  builder(lowered& l, pipeline_rank& r, const rank_order& order, std::vector<item>& out)
      : l_(l), plan_(*l.plan), r_(r), order_(order), buffers_(colour_buffers(l, r, order)), out_(out) {
    for (const action& a : order.actions)
      if (sums_gradients(a)) last_sum_[a.stage] = a.microbatch;
  }

  void train() {
    actions();
    finish_step();
  }
  void evaluate() {
    actions();
    if (holds_loss()) reduce_loss();
  }

 private:
  void actions() {
    for (std::size_t k = 0; k < order_.actions.size(); ++k) {
      for (const pipeline_message& m : order_.received_before[k]) move(m, false);
      compute(order_.actions[k]);
      for (const pipeline_message& m : order_.sent_after[k]) move(m, true);
    }
  }

  static bool sums_gradients(const action& a) { return a.kind == action_kind::B || a.kind == action_kind::W; }

  int local(int stage) const {
    for (std::size_t i = 0; i < r_.stages.size(); ++i)
      if (r_.stages[i].stage == stage) return static_cast<int>(i);
    return -1;
  }
  bool holds_loss() const { return r_.stages.back().last; }

  item base(int stage, int microbatch, item_kind what) const {
    const microbatch_buffers& b = buffers_.at({stage, microbatch});
    item i;
    i.what = what;
    i.stage = local(stage);
    i.microbatch = microbatch;
    i.slot = b.slot, i.input = b.input, i.output = b.output, i.dy = b.dy, i.dx = b.dx;
    return i;
  }

  void move(const pipeline_message& m, bool sending) {
    item i = base(sending ? m.from_stage : m.to_stage, m.microbatch, sending ? item_kind::send : item_kind::receive);
    i.on = sending ? (m.to_next ? stream::to_next : stream::to_prev) : (m.to_next ? stream::from_prev : stream::from_next);
    i.backward_traffic = m.gradients;
    i.name = std::string(m.gradients ? "B" : "F") + std::to_string(m.microbatch) + ": stage " + std::to_string(m.from_stage) +
             " -> " + std::to_string(m.to_stage);
    i.message = l_.message(i.name, r_.stages[i.stage].boundary_bytes);
    out_.push_back(i);
  }

  void compute(const action& a) {
    item i = base(a.stage, a.microbatch, a.kind == action_kind::F ? item_kind::forward : item_kind::backward);
    i.does = phase_of(a.kind);
    i.name = name_of(a);
    if (a.kind != action_kind::I) i.first = begun_.insert({a.stage, sums_gradients(a)}).second;
    const bool reduces = std::any_of(r_.buckets.begin(), r_.buckets.end(), [&](const bucket& b) {
      return b.after_layer >= 0 && b.stage == i.stage;
    });
    if (!sums_gradients(a) || !reduces || a.microbatch != last_sum_.at(a.stage)) {
      out_.push_back(i);
      return;
    }
    i.what = item_kind::backward_layer;
    const std::vector<layer_use>& layers = r_.stages[i.stage].layers;
    for (int layer = static_cast<int>(layers.size()) - 1; layer >= 0; --layer) {
      if (l_.bodies[layers[layer].kind].calls(i.does).empty()) continue;
      i.layer = layer;
      out_.push_back(i);
      for (std::size_t b = 0; b < r_.buckets.size(); ++b)
        if (r_.buckets[b].after_layer == layer && r_.buckets[b].stage == i.stage) reduce(static_cast<int>(b), role::dp);
    }
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
    out_.push_back(i);
  }

  /// What is left after the last microbatch: reductions, the global norm, the optimizer.
  void finish_step() {
    for (std::size_t b = 0; b < r_.buckets.size(); ++b) {
      if (r_.buckets[b].after_layer >= 0) continue;
      if (r_.buckets[b].over_tp) reduce(static_cast<int>(b), role::tp);
      if (r_.buckets[b].over_dp) reduce(static_cast<int>(b), role::dp);
      if (r_.buckets[b].tied) reduce(static_cast<int>(b), role::tied);
    }
    if (holds_loss()) reduce_loss();
    item i;
    auto norm = [&](item_kind what, const char* name, role over, bool sharded) {
      i.what = what;
      i.name = name;
      i.over = over;
      i.sharded = sharded;
      i.first = what == item_kind::squares && (sharded || r_.squares_sharded.empty());
      i.message = what == item_kind::reduce_norm ? l_.message(name, l_.wide_bytes()) : -1;
      out_.push_back(i);
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
    out_.push_back(i);
  }

  void reduce_loss() {
    if (plan_.dims.dp_replicate == 1) return;
    item i;
    i.what = item_kind::reduce_loss;
    i.on = stream::reduce;  // as all that uses the dp communicator
    i.over = role::dp;
    i.name = "loss over dp";
    i.message = l_.message(i.name, l_.wide_bytes());
    out_.push_back(i);
  }

  lowered& l_;
  const plan_data& plan_;
  pipeline_rank& r_;
  const rank_order& order_;
  const buffer_table buffers_;
  std::vector<item>& out_;
  std::set<std::pair<int, bool>> begun_;  // stages that have run forward, or summed gradients
  std::map<int, int> last_sum_;           // of gradients, of each stage: microbatch
};

}  // namespace

void schedule_items(lowered& l) {
  const action_table &all = l.plan->actions, forwards = forwards_of(all);
  const std::vector<pipeline_message> messages = place_messages(all), forward_messages = place_messages(forwards);
  for (pipeline_rank& r : l.ranks) {
    size_stages(l, r);
    builder(l, r, order_of(all, messages, r.index), r.train).train();
    builder(l, r, order_of(forwards, forward_messages, r.index), r.evaluate).evaluate();
  }
}

}  // namespace rankc::codegen
