// SPDX-License-Identifier: Apache-2.0
#include "buffers.hpp"

#include <rankc/codegen/intervals.hpp>

#include <algorithm>

namespace rankc::codegen {

namespace {

/// Indices of actions of the table: where a stage works on a microbatch here.
struct works {
  int forward = -1, backward = -1, weights = -1;  // of the same action where backward is whole
};

class rank_buffers {
 public:
  rank_buffers(const lowered& l, pipeline_rank& r, const action_table& t, const communication& c) : l_(l), r_(r), t_(t) {
    for (int i = t.begin[r.index]; i < t.begin[r.index + 1]; ++i) {
      const action& a = t.actions[i];
      if (!computes(a.kind)) continue;
      works& w = works_[{a.stage, a.microbatch}];
      if (a.kind == action_kind::F) w.forward = i;
      if (a.kind == action_kind::B || a.kind == action_kind::I) w.backward = i;
      if (a.kind == action_kind::B || a.kind == action_kind::W) w.weights = i;
    }
    for (const message& m : c.messages) {
      const action& made = t.actions[m.producer];
      const bool gradient = made.kind != action_kind::F;
      const boundary_key key{gradient, gradient ? made.stage : made.stage + 1, made.microbatch};
      if (m.to == r.index) arrives_[key] = m.posted;
      if (m.from == r.index) leaves_[key] = m.left;
    }
  }

  buffer_table place() {
    place_slots();
    place_boundaries();
    return std::move(table_);
  }

 private:
  stage_plan& here(int stage) const {
    return *std::find_if(r_.stages.begin(), r_.stages.end(), [&](const stage_plan& s) { return s.stage == stage; });
  }
  /// The halves of an OVERLAP are one position: what one of them lets go, the other cannot have.
  int begin_of(int i) const { return detail::first_of_item(t_, r_.index, i); }
  int end_of(int i) const { return i + t_.actions[i].overlaps_next; }

  void place_slots() {
    struct slot_life : lifetime {
      int stage, microbatch;
    };
    std::vector<slot_life> lives;
    for (const auto& [key, w] : works_)
      lives.push_back({{begin_of(w.forward), end_of(std::max(w.forward, w.weights)), here(key.first).slot_bytes}, key.first, key.second});
    // The large ones first, which leaves the fewest gaps.
    std::stable_sort(lives.begin(), lives.end(), [](const slot_life& a, const slot_life& b) {
      return a.bytes != b.bytes ? a.bytes > b.bytes : a.first < b.first;
    });
    std::vector<lifetime> placed(lives.begin(), lives.end());
    r_.arena.slots_bytes = std::max(r_.arena.slots_bytes, place_intervals(placed));
    for (std::size_t i = 0; i < lives.size(); ++i) {
      std::vector<std::size_t>& slots = here(lives[i].stage).slots;
      const auto known = std::find(slots.begin(), slots.end(), placed[i].offset);
      table_.slots[{lives[i].stage, lives[i].microbatch}] = static_cast<int>(known - slots.begin());
      if (known == slots.end()) slots.push_back(placed[i].offset);
    }
  }

  /// Until when a stage reads a buffer at its end: the second half of backward may need it too.
  int until(const stage_plan& s, const works& w, space end) const {
    const bool at_front = end == space::x || end == space::dx;
    const body& b = l_.bodies[(at_front ? s.layers.front() : s.layers.back()).kind];
    return std::max(w.forward, b.uses(phase::backward_weight, end) ? w.weights : w.backward);
  }

  /// The use of a boundary here: by the stage after it, by the one before it, or by a message.
  buffer_use use_of(const boundary_key& key, int* slot) const {
    const auto after = works_.find({key.stage, key.microbatch}), before = works_.find({key.stage - 1, key.microbatch});
    const auto arrives = arrives_.find(key), leaves = leaves_.find(key);
    int last = -1;
    if (after != works_.end()) last = until(here(key.stage), after->second, key.gradient ? space::dx : space::x);
    if (before != works_.end() && key.gradient) last = std::max(last, until(here(key.stage - 1), before->second, space::dy));
    if (leaves != leaves_.end()) last = std::max(last, leaves->second);
    const int first = arrives != arrives_.end() ? arrives->second : key.gradient ? after->second.backward : before->second.forward;
    return {begin_of(first), end_of(last), slot};
  }

  void place_boundaries() {
    for (const auto& [key, w] : works_)
      for (const bool gradient : {false, true}) {
        if (gradient && w.backward < 0) continue;
        for (const int stage : {key.first, key.first + 1})
          if (stage > 0 && stage < t_.stages()) table_.boundaries[{gradient, stage, key.second}] = -1;
      }
    std::vector<buffer_use> uses;
    for (auto& [key, slot] : table_.boundaries) {
      uses.push_back(use_of(key, &slot));
      r_.arena.boundary_bytes = std::max(r_.arena.boundary_bytes, boundary_bytes(l_, r_, key.stage));
    }
    r_.arena.boundary_count = std::max(r_.arena.boundary_count, colour(uses));
  }

  const lowered& l_;
  pipeline_rank& r_;
  const action_table& t_;
  std::map<std::pair<int, int>, works> works_;  // of (stage, microbatch)
  std::map<boundary_key, int> arrives_, leaves_;
  buffer_table table_;
};

}  // namespace

std::size_t boundary_bytes(const lowered& l, const pipeline_rank& r, int stage) {
  for (const stage_plan& s : r.stages) {
    if (s.stage == stage) return l.bodies[s.layers.front().kind].x_bytes;
    if (s.stage + 1 == stage) return l.bodies[s.layers.back().kind].y_bytes;
  }
  return 0;
}

buffer_table place_buffers(const lowered& l, pipeline_rank& r, const action_table& t, const communication& c) {
  return rank_buffers(l, r, t, c).place();
}

}  // namespace rankc::codegen
