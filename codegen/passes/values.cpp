// SPDX-License-Identifier: Apache-2.0
// The values that a rank's step makes and consumes: values that layers save, values between layers and values
// between stages. Each has the actions between which it keeps its place.
#include <rankc/codegen/names.hpp>
#include <rankc/schedule/communicate.hpp>

#include "passes.hpp"

namespace rankc::codegen {

namespace {

/// The actions in which a stage works on a microbatch: indices into the table.
struct works {
  int forward = -1, backward = -1, weights = -1;  // equal if backward is whole
};

class value_maker {
 public:
  value_maker(const lowered& l, pipeline_rank& r, const action_table& t, const communication& c, step& out)
      : l_(l), r_(r), t_(t), out_(out) {
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
      const boundary key{gradient, gradient ? made.stage : made.stage + 1, made.microbatch};
      if (m.to == r.index) arrives_[key] = m.posted;
      if (m.from == r.index) leaves_[key] = m.left;
    }
  }

  void run() {
    for (const stage_plan& s : r_.stages)
      boundary_unit_ = std::max({boundary_unit_, aligned(before(s)), aligned(after(s))});
    for (const auto& [key, w] : works_) {
      const stage_plan& s = stage(key.first);
      for (const stage_plan::member& m : s.members) add(s, key.second, w, m);
      for (const int at : {s.stage, s.stage + 1})
        if (at > 0 && at < t_.stages())
          for (const bool gradient : {false, true})
            if (!gradient || w.backward >= 0) add({gradient, at, key.second});
    }
  }

 private:
  struct boundary {
    bool gradient;
    int stage, microbatch;  // the stage after the boundary
    auto operator<=>(const boundary&) const = default;
  };

  const stage_plan* find(int number) const {
    const auto at = std::find_if(r_.stages.begin(), r_.stages.end(),
                                 [&](const stage_plan& s) { return s.stage == number; });
    return at == r_.stages.end() ? nullptr : &*at;
  }
  const stage_plan& stage(int number) const { return *find(number); }
  const body& of(const layer_use& use) const { return l_.bodies[use.kind]; }
  std::size_t before(const stage_plan& s) const { return of(s.layers.front()).x_bytes; }
  std::size_t after(const stage_plan& s) const { return of(s.layers.back()).y_bytes; }

  /// Both halves of an OVERLAP run concurrently, so neither may reuse memory that the other frees.
  int begin_of(int i) const { return detail::first_of_item(t_, r_.index, i); }
  int end_of(int i) const { return i + t_.actions[i].overlaps_next; }

  void add(placed_value v, std::size_t unit) {
    std::vector<pool>& pools = r_.arena.pools;
    // Values between stages share one pool.
    const kept what = v.what == kept::gradient ? kept::activation : v.what;
    const auto known = std::find_if(pools.begin(), pools.end(),
                                    [&](const pool& p) { return p.what == what && p.unit == unit; });
    v.pool = static_cast<int>(known - pools.begin());
    if (known == pools.end()) pools.push_back({what, unit});
    v.first = begin_of(v.first);
    v.last = end_of(v.last);
    v.lives = token(t_.actions[v.first]) + " .. " + token(t_.actions[v.last]);
    if (out_.index
            .try_emplace({static_cast<int>(v.what), v.stage, v.microbatch, v.layer},
                         static_cast<int>(out_.values.size()))
            .second)
      out_.values.push_back(std::move(v));
  }

  void add(const stage_plan& s, int microbatch, const works& w, const stage_plan::member& m) {
    const body& b = of(s.layers[m.layer]);
    placed_value v{.what = m.what,
                   .stage = s.stage,
                   .microbatch = microbatch,
                   .layer = m.layer,
                   .bytes = bytes_of(b, m.what)};
    v.first = m.what == kept::output_gradient || m.what == kept::halfway ? w.backward : w.forward;
    v.last = std::max(w.forward, w.weights);
    if (v.first >= 0) add(std::move(v), aligned(v.bytes));  // no gradient in an evaluation
  }

  /// The last action in which a stage reads a value at its input or its output. The second half of backward
  /// may read it too.
  int until(const stage_plan& s, const works& w, space end) const {
    const bool at_front = end == space::x || end == space::dx;
    const body& b = of(at_front ? s.layers.front() : s.layers.back());
    return std::max(w.forward, b.uses(phase::backward_weight, end) ? w.weights : w.backward);
  }

  /// Adds a value between two stages. The stage after it, the stage before it or a message uses it.
  void add(const boundary& key) {
    const auto after = works_.find({key.stage, key.microbatch}),
               before = works_.find({key.stage - 1, key.microbatch});
    const auto arrives = arrives_.find(key), leaves = leaves_.find(key);
    placed_value v{.what = key.gradient ? kept::gradient : kept::activation,
                   .stage = key.stage,
                   .microbatch = key.microbatch,
                   .name = name_of(key, after != works_.end()),
                   .bytes = bytes_between(key.stage),
                   .carried = carried_between(key.stage),
                   .last = -1};
    if (after != works_.end())
      v.last = until(stage(key.stage), after->second, key.gradient ? space::dx : space::x);
    if (before != works_.end() && key.gradient)
      v.last = std::max(v.last, until(stage(key.stage - 1), before->second, space::dy));
    if (leaves != leaves_.end()) v.last = std::max(v.last, leaves->second);
    if (arrives != arrives_.end()) v.first = arrives->second;
    else v.first = key.gradient ? after->second.backward : before->second.forward;
    add(std::move(v), boundary_unit_);
  }
  std::size_t bytes_between(int boundary_stage) const {
    if (const stage_plan* s = find(boundary_stage)) return before(*s);
    return after(stage(boundary_stage - 1));
  }
  std::size_t carried_between(int boundary_stage) const {
    if (const stage_plan* s = find(boundary_stage)) return bytes_carried(of(s->layers.front()), space::x);
    return bytes_carried(of(stage(boundary_stage - 1).layers.back()), space::y);
  }
  /// "x_1F0" is the input of 1F0. "y_0F0" is the output of 0F0 if the next stage is on another rank. "d_"
  /// marks their gradients.
  static std::string name_of(const boundary& key, bool has_next) {
    return std::string(key.gradient ? "d_" : "") + (has_next ? "x_" : "y_") +
           std::to_string(key.stage - !has_next) + (key.gradient ? "B" : "F") +
           std::to_string(key.microbatch);
  }

  const lowered& l_;
  pipeline_rank& r_;
  const action_table& t_;
  std::map<std::pair<int, int>, works> works_;  // of (stage, microbatch)
  std::map<boundary, int> arrives_, leaves_;
  std::size_t boundary_unit_ = 0;
  step& out_;
};

}  // namespace

void make_values(const lowered& l, pipeline_rank& r, const action_table& t, const communication& c,
                 step& out) {
  value_maker(l, r, t, c, out).run();
}

}  // namespace rankc::codegen
