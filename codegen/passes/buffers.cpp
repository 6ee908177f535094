// SPDX-License-Identifier: Apache-2.0
#include "buffers.hpp"

#include <rankc/codegen/intervals.hpp>

#include <algorithm>

namespace rankc::codegen {

rank_order order_of(const action_table& t, const std::vector<pipeline_message>& messages, int rank) {
  rank_order o;
  o.actions.assign(t.actions.begin() + t.begin[rank], t.actions.begin() + t.begin[rank + 1]);
  o.received_before.resize(o.actions.size());
  o.sent_after.resize(o.actions.size());
  for (const pipeline_message& m : messages) {
    if (m.receiver == rank) o.received_before[m.posted].push_back(m);
    if (m.sender == rank) o.sent_after[m.made].push_back(m);
  }
  return o;
}

namespace {

/// Positions at which a stage works on a microbatch, and at which its messages begin and end.
struct life {
  int forward = -1, backward = -1, weights = -1;  // of the same action where backward is whole
  int input_from = -1, output_until = -1, dy_from = -1, dx_until = -1;
};

std::map<std::pair<int, int>, life> lives_of(const rank_order& o) {
  std::map<std::pair<int, int>, life> all;
  for (int k = 0; k < static_cast<int>(o.actions.size()); ++k) {
    const action& a = o.actions[k];
    life& l = all[{a.stage, a.microbatch}];
    if (a.kind == action_kind::F) l.forward = l.backward = l.weights = k;
    if (a.kind == action_kind::I || a.kind == action_kind::B) l.backward = k;
    if (a.kind == action_kind::W || a.kind == action_kind::B) l.weights = k;
    for (const pipeline_message& m : o.received_before[k]) {
      life& to = all[{m.to_stage, m.microbatch}];
      (m.gradients ? to.dy_from : to.input_from) = k;
    }
    for (const pipeline_message& m : o.sent_after[k]) (m.gradients ? l.dx_until : l.output_until) = m.held;
  }
  return all;
}

}  // namespace

buffer_table colour_buffers(const lowered& l, pipeline_rank& r, const rank_order& order) {
  const auto lives = lives_of(order);
  buffer_table table;
  for (stage_plan& s : r.stages) {
    std::vector<int> microbatches;  // in the order of their forwards
    for (const action& a : order.actions)
      if (a.kind == action_kind::F && a.stage == s.stage) microbatches.push_back(a.microbatch);
    auto colour = [&](int microbatch_buffers::*which, int stage_plan::*count, auto span_of) {
      std::vector<span_of_time> spans;
      for (int m : microbatches) spans.push_back(span_of(m, lives.at({s.stage, m})));
      s.*count = std::max(s.*count, colour_intervals(spans));
      for (std::size_t i = 0; i < spans.size(); ++i) table[{s.stage, microbatches[i]}].*which = spans[i].colour;
    };
    // What lies at the stage's ends is needed until the second half of backward, if that reads it.
    const auto until = [&](const life& x, const stage_plan& of, space end) {
      const layer_use& layer = end == space::dy ? of.layers.back() : of.layers.front();
      return l.bodies[layer.kind].uses(phase::backward_weight, end) ? x.weights : x.backward;
    };
    const bool trains = lives.at({s.stage, microbatches[0]}).backward != lives.at({s.stage, microbatches[0]}).forward;
    colour(&microbatch_buffers::slot, &stage_plan::slots, [](int, const life& x) { return span_of_time{x.forward, x.weights}; });
    if (s.stage > 0)
      colour(&microbatch_buffers::input, &stage_plan::inputs, [&](int m, const life& x) {
        return span_of_time{s.previous_here < 0 ? x.input_from : lives.at({s.stage - 1, m}).forward, until(x, s, space::x)};
      });
    if (!s.last && s.next_here < 0)
      colour(&microbatch_buffers::output, &stage_plan::outputs, [](int, const life& x) { return span_of_time{x.forward, x.output_until}; });
    if (!s.last && trains)
      colour(&microbatch_buffers::dy, &stage_plan::dys, [&](int m, const life& x) {
        if (s.next_here < 0) return span_of_time{x.dy_from, until(x, s, space::dy)};
        const life& next = lives.at({s.stage + 1, m});
        return span_of_time{next.backward, std::max(until(x, s, space::dy), until(next, r.stages[s.next_here], space::dx))};
      });
    if (s.stage > 0 && s.previous_here < 0 && trains)
      colour(&microbatch_buffers::dx, &stage_plan::dxs, [&](int, const life& x) {
        return span_of_time{x.backward, std::max(x.dx_until, until(x, s, space::dx))};
      });
  }
  for (const stage_plan& s : r.stages)
    for (auto& [of, buffers] : table) {
      if (of.first != s.stage) continue;
      if (s.next_here >= 0) buffers.output = table.at({s.stage + 1, of.second}).input;
      if (s.previous_here >= 0) buffers.dx = table.at({s.stage - 1, of.second}).dy;
    }
  return table;
}

}  // namespace rankc::codegen
