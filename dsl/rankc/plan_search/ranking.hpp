// SPDX-License-Identifier: Apache-2.0
// Finds the fastest plans that fit, and the plans that no other beats in time and memory. Choices are visited
// in order of their lower bounds, and only those that can still win get a closer bound.
// Source: best-first search, Hart, Nilsson and Raphael 1968.
#pragma once
#include <rankc/plan_search/bounds.hpp>

#include <algorithm>
#include <vector>

namespace rankc::plan_search {

/// The results asked for: the number of plans in order of time, and, with `front`, also the plans for which
/// no other is both faster and smaller.
struct wanted {
  int top = 1;
  bool front = false;
};

/// The number of choices that a search examined in each stage: without a schedule, with placed stages, with a
/// predicted schedule, and fully judged.
struct looked_at {
  int unscheduled = 0, placed = 0, predicted = 0, judged = 0;
};

/// Plans that fit. Of equally fast plans the smallest comes first; ties keep the order of all choices.
struct ranking {
  std::vector<judged> top, front;
  looked_at counts{};
};

namespace detail {

/// The kind of a candidate's bound: a bound for any schedule, a bound for its stages, or its step.
enum class bound_kind : unsigned char { least, placed, step };
struct candidate {
  bound at_least;
  int order;  // index among all choices, of its first schedule
  bound_kind by;
  choice of;
  int placement = -1;  // index in the search's placements
  /// The order of a heap, whose largest element is first: the candidate with the fastest bound, and of
  /// equally fast ones the smallest.
  constexpr bool operator<(const candidate& other) const {
    if (at_least.step != other.at_least.step) return at_least.step > other.at_least.step;
    return at_least.bytes != other.at_least.bytes ? at_least.bytes > other.at_least.bytes
                                                  : order > other.order;
  }
};

struct ranked {
  judged plan;
  int order;
  /// True if this plan beats every plan with that lower bound.
  constexpr bool is_before(const bound& least, int other) const {
    if (plan.time.step != least.step) return plan.time.step < least.step;
    return plan.bytes != least.bytes ? plan.bytes < least.bytes : order < other;
  }
  constexpr bool is_before(const ranked& r) const {
    return is_before({r.plan.time.step, r.plan.bytes}, r.order);
  }
};

/// The best plans judged so far.
class winners {
 public:
  constexpr explicit winners(const wanted& w) : wanted_(w) {}

  constexpr void add(const ranked& r) {
    insert(top_, r);
    if (top_.size() > static_cast<std::size_t>(wanted_.top)) top_.pop_back();
    if (!wanted_.front || is_off_front({r.plan.time.step, r.plan.bytes}, r.order)) return;
    std::erase_if(front_, [&](const ranked& f) { return r.plan.bytes <= f.plan.bytes && r.is_before(f); });
    insert(front_, r);
  }
  /// True if no plan with this lower bound can be among the results.
  constexpr bool beat(const bound& least, int order) const {
    if (top_.size() < static_cast<std::size_t>(wanted_.top)) return false;
    if (wanted_.top > 0 && !top_.back().is_before(least, order)) return false;
    return !wanted_.front || is_off_front(least, order);
  }
  constexpr ranking all() const {
    ranking out;
    for (const ranked& r : top_) out.top.push_back(r.plan);
    for (const ranked& r : front_) out.front.push_back(r.plan);
    return out;
  }

 private:
  static constexpr void insert(std::vector<ranked>& into, const ranked& r) {
    into.insert(
        std::find_if(into.begin(), into.end(), [&](const ranked& other) { return r.is_before(other); }), r);
  }
  constexpr bool is_off_front(const bound& least, int order) const {
    for (const ranked& f : front_)
      if (f.plan.bytes <= least.bytes && f.is_before(least, order)) return true;
    return false;
  }
  const wanted wanted_;
  std::vector<ranked> top_, front_;
};

template <class Model>
class ranking_search {
 public:
  constexpr ranking_search(const Model& model, const question& q, const wanted& w)
      : model_(model), q_(q), wanted_(w), bounds_(model, q), found_(w) {}

  constexpr ranking run(auto progress) {
    for (const unscheduled& c : unscheduled_choices(q_, experts_of(model_))) {
      ++counts_.unscheduled;
      push({bounds_.least(c), all_, bound_kind::least, {c}});
      all_ += static_cast<int>(schedules_of(c.dims.pp, c.microbatches).size());
    }
    while (!open_.empty()) {
      std::pop_heap(open_.begin(), open_.end());
      const candidate next = open_.back();
      open_.pop_back();
      const bool is_beaten = found_.beat(next.at_least, next.order);
      if (is_beaten && !wanted_.front) break;  // all later candidates are beaten too
      if (!is_beaten) look_at(next);
      progress(counts_, open_.size());
    }
    ranking out = found_.all();
    out.counts = counts_;
    return out;
  }

 private:
  constexpr void push(const candidate& c) {
    if (!fit(q_.machines, c.at_least.bytes)) return;
    open_.push_back(c);
    std::push_heap(open_.begin(), open_.end());
  }

  /// Examines a candidate one stage further. Counting memory takes longer than predicting time. With the
  /// front, it is counted for placed candidates. Otherwise it is counted only for candidates whose schedule
  /// has been predicted.
  constexpr void look_at(const candidate& c) {
    if (c.by == bound_kind::least && c.of.dims.pp > 1) return place(c);
    if (c.by == bound_kind::least)
      return predict({c.at_least, c.order, c.by, {c.of, schedules_of(1, c.of.microbatches).front()}});
    const bool counts_memory =
        wanted_.front ? c.by == bound_kind::placed : c.placement >= 0 && bounds_.in_flight(c.of);
    if (counts_memory && is_too_large(c)) return;
    if (c.by == bound_kind::placed) predict(c);
    else judge(c);
  }

  /// Choices with the same stages. A schedule with backwards in halves may merge all of them again, so its
  /// bound is the lower one of whole and split backwards.
  struct placement {
    double step;
    int whole = -1;          // for halves: the placement on the same stages with whole backwards
    placed_memory memory{};  // computed at its first use
  };
  constexpr placement& at(int i) { return placements_[static_cast<std::size_t>(i)]; }
  constexpr int add(const placement& p) {
    ++counts_.placed;
    placements_.push_back(p);
    return static_cast<int>(placements_.size()) - 1;
  }
  constexpr const placed_memory& memory_of(int i, const choice& c) {
    if (!at(i).memory.ranks.empty()) return at(i).memory;
    placed_memory memory = bounds_.memory_of_placed(c, at(i).whole >= 0);
    if (at(i).whole >= 0) memory.join(memory_of(at(i).whole, c));
    return at(i).memory = std::move(memory);
  }

  /// Adds a choice's schedules, with a lower bound over all orders of actions on their stages.
  constexpr void place(const candidate& c) {
    struct stages {
      action_table of;
      int whole, split = -1;
    };
    std::vector<stages> seen;
    int order = c.order;
    for (const schedules::listed& s : schedules_of(c.of.dims.pp, c.of.microbatches)) {
      const choice scheduled{c.of, s};
      const action_table t = s.placement(c.of.dims.pp);
      const bool in_halves = s.in_halves();
      auto found = std::find_if(seen.begin(), seen.end(), [&](const stages& known) {
        return known.of.rank_of_stage == t.rank_of_stage &&
               known.of.reversed_rank_of_stage == t.reversed_rank_of_stage;
      });
      if (found == seen.end() && bounds_.is_legal_so_far(scheduled))
        if (const auto step = bounds_.placed_step(scheduled, t, false))
          found = seen.insert(seen.end(), {t, add({*step})});
      if (found != seen.end() && in_halves && found->split < 0)
        if (const auto step = bounds_.placed_step(scheduled, t, true))
          found->split = add({std::min(*step, at(found->whole).step), found->whole});
      int here = -1;
      if (found != seen.end()) here = in_halves ? found->split : found->whole;
      if (here >= 0) push({{at(here).step, c.at_least.bytes}, order, bound_kind::placed, scheduled, here});
      ++order;
    }
  }

  /// True if the lower bound of the ranks' memory, with the known microbatches in flight of the schedule,
  /// does not fit or cannot be among the results.
  constexpr bool is_too_large(const candidate& c) {
    const placed_memory& memory = memory_of(c.placement, c.of);
    const std::vector<int>* const in_flight = bounds_.in_flight(c.of);
    const bound least{c.at_least.step, in_flight ? memory.most_with(*in_flight) : memory.most()};
    return !fit(q_.machines, least.bytes) || found_.beat(least, c.order);
  }
  constexpr void predict(candidate c) {
    const auto least = bounds_.predicted(c.of, wanted_.front);
    if (!least) return;
    ++counts_.predicted;
    c.at_least = {least->step, std::max(least->bytes, c.at_least.bytes)};
    c.by = bound_kind::step;
    push(c);
  }
  constexpr void judge(const candidate& c) {
    ++counts_.judged;
    report out;
    if (const auto j = plan_search::judge(model_, q_, c.of, out); j && j->fits) found_.add({*j, c.order});
  }

  const Model& model_;
  const question& q_;
  const wanted wanted_;
  choice_bounds<Model> bounds_;
  winners found_;
  std::vector<candidate> open_;
  std::vector<placement> placements_;
  looked_at counts_{};
  int all_ = 0;
};

}  // namespace detail

/// Ranks the plans of a model. `progress(looked_at, number of open candidates)` is called after each
/// candidate.
constexpr ranking rank_plans(const auto& model, const question& q, const wanted& w, auto progress) {
  return detail::ranking_search(model, q, w).run(progress);
}
constexpr ranking rank_plans(const auto& model, const question& q, const wanted& w = {}) {
  return rank_plans(model, q, w, [](const looked_at&, std::size_t) {});
}

}  // namespace rankc::plan_search
