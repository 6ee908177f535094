// SPDX-License-Identifier: Apache-2.0
// The number of buffers that a pipeline rank needs for the values of its microbatches. Each kind of value has
// a pool of buffers of one size. A pool has as many buffers as the rank holds such values at the same time.
#pragma once
#include <rankc/schedule/communicate.hpp>

#include <vector>

namespace rankc::lowering {

/// A pool: `count` places of `unit` bytes for one kind of value.
///   saved            the values that layers save for backward
///   output           the results of layers
///   output_gradient  the gradients of these results
///   between          the tensors that stages exchange
///   halfway          the values that one half of backward keeps for the other
struct place_pool {
  enum kind : unsigned char { saved, output, output_gradient, between, halfway } what;
  std::size_t unit;  // bytes
  int count = 0;
};

/// The values of each microbatch in a stage of a rank.
struct stage_units {
  int stage = 0;
  std::vector<int> by_forward{},
      by_backward{};  // places that an F takes in each pool, and that an I or a B takes
  bool keeps_x = false, keeps_dx = false, keeps_dy = false;  // true if it is needed until W
};

/// The actions of a table for each stage and microbatch, and the actions between which a message needs its
/// buffer.
/// Shapes: (stages x microbatches), indices of actions; a boundary has the number of the stage after it.
struct action_map {
  std::vector<int> forward, backward, weights;  // a B is in both of the latter
  std::vector<int> posted[2], left[2];          // for messages at a boundary: activations, gradients

  constexpr action_map(const auto& t, const auto& c) {
    const std::size_t cells = static_cast<std::size_t>(t.stages()) * t.microbatches;
    for (std::vector<int>* list : {&forward, &backward, &weights, &posted[0], &posted[1], &left[0], &left[1]})
      list->assign(cells, -1);
    for (int i = 0; i < static_cast<int>(t.actions.size()); ++i) {
      const action& a = t.actions[i];
      const int cell = a.stage * t.microbatches + a.microbatch;
      if (a.kind == action_kind::F) forward[cell] = i;
      if (a.kind == action_kind::B || a.kind == action_kind::I) backward[cell] = i;
      if (a.kind == action_kind::B || a.kind == action_kind::W) weights[cell] = i;
    }
    for (const message& m : c.messages) {
      const action& made = t.actions[m.producer];
      const bool gradient = made.kind != action_kind::F;
      const int cell = (made.stage + !gradient) * t.microbatches + made.microbatch;
      posted[gradient][cell] = m.posted;
      left[gradient][cell] = m.left;
    }
  }
};

namespace detail {

using rankc::detail::first_of_item;

/// Counts the places of the pools of layers. An F takes places, and the last backward frees them. The two
/// actions of an OVERLAP both take places before either frees any.
constexpr void count_units(const auto& t, int rank, const std::vector<stage_units>& stages,
                           std::vector<place_pool>& pools) {
  std::vector<const stage_units*> of(static_cast<std::size_t>(t.stages()), nullptr);
  for (const stage_units& s : stages) of[s.stage] = &s;
  std::vector<int> live(pools.size(), 0);
  const auto add = [&](const std::vector<int>& units, int sign) {
    for (std::size_t p = 0; p < live.size(); ++p) {
      live[p] += sign * units[p];
      if (live[p] > pools[p].count) pools[p].count = live[p];
    }
  };
  const auto open = [&](const action& a) {
    if (a.kind == action_kind::F) add(of[a.stage]->by_forward, 1);
    if (a.kind == action_kind::B || a.kind == action_kind::I) add(of[a.stage]->by_backward, 1);
  };
  const auto close = [&](const action& a) {
    if (a.kind == action_kind::B || a.kind == action_kind::W) add(of[a.stage]->by_backward, -1);
    if (a.kind == action_kind::B || a.kind == action_kind::W || (t.inference && a.kind == action_kind::F))
      add(of[a.stage]->by_forward, -1);
  };
  for (int i = t.begin[rank]; i < t.begin[rank + 1];) {
    const int n = t.actions[i].overlaps_next ? 2 : 1;
    for (int k = 0; k < n; ++k) open(t.actions[i + k]);
    for (int k = 0; k < n; ++k) close(t.actions[i + k]);
    i += n;
  }
}

/// Counts the buffers for the tensors between stages.
template <class Table>
class boundary_counter {
 public:
  constexpr boundary_counter(const Table& t, const action_map& m, int rank)
      : t_(t),
        m_(m),
        rank_(rank),
        change_(static_cast<std::size_t>(t.begin[rank + 1] - t.begin[rank] + 1), 0) {}

  constexpr int run(const std::vector<stage_units>& stages) {
    for (const stage_units& s : stages)
      for (int mb = 0; mb < t_.microbatches; ++mb) {
        if (t_.rank_of(s.stage, mb) != rank_) continue;
        if (s.stage > 0) visit(find(stages, s.stage - 1, mb), &s, s.stage, mb);
        if (s.stage + 1 < t_.stages() && t_.rank_of(s.stage + 1, mb) != rank_)
          visit(&s, nullptr, s.stage + 1, mb);
      }
    int live = 0, most = 0;
    for (int n : change_) most = std::max(most, live += n);
    return most;
  }

 private:
  constexpr const stage_units* find(const std::vector<stage_units>& stages, int stage, int mb) const {
    if (t_.rank_of(stage, mb) != rank_) return nullptr;
    for (const stage_units& s : stages)
      if (s.stage == stage) return &s;
    return nullptr;
  }
  /// The last action of a stage that reads its input or its gradient.
  constexpr int until(int cell, bool kept) const {
    return std::max(m_.forward[cell], kept ? m_.weights[cell] : m_.backward[cell]);
  }

  /// Visits the tensors at a boundary in both directions. This rank has the stage before it, the stage after
  /// it, or both.
  constexpr void visit(const stage_units* before, const stage_units* after, int boundary, int mb) {
    const int cell = boundary * t_.microbatches + mb, earlier = cell - t_.microbatches;
    int last = after ? until(cell, after->keeps_x) : -1;
    if (!after) last = m_.left[0][cell];
    add(before ? m_.forward[earlier] : m_.posted[0][cell], last);
    if (m_.backward[after ? cell : earlier] < 0) return;
    last = after ? until(cell, after->keeps_dx) : -1;
    if (before) last = std::max(last, until(earlier, before->keeps_dy));
    else last = std::max(last, m_.left[1][cell]);
    add(after ? m_.backward[cell] : m_.posted[1][cell], last);
  }
  constexpr void add(int first, int last) {
    const int begin = t_.begin[rank_];
    ++change_[first_of_item(t_, rank_, first) - begin];
    --change_[last + t_.actions[last].overlaps_next + 1 - begin];
  }

  const Table& t_;
  const action_map& m_;
  const int rank_;
  std::vector<int> change_;  // in the number of live buffers, before each action
};

}  // namespace detail

/// Raises the pools to the places that a rank needs for the actions of a table. The first pool is for the
/// tensors between stages.
constexpr void count_places(const auto& t, const action_map& m, int rank,
                            const std::vector<stage_units>& stages, std::vector<place_pool>& pools) {
  detail::count_units(t, rank, stages, pools);
  pools.front().count = std::max(pools.front().count, detail::boundary_counter(t, m, rank).run(stages));
}

}  // namespace rankc::lowering
