// SPDX-License-Identifier: Apache-2.0
// The proof of a schedule: its actions can run to the end, each once and in data order.
#pragma once
#include <rankc/schedule/reductions.hpp>
#include <rankc/schedule/stage_actions.hpp>
#include <rankc/schedule/walk.hpp>

namespace rankc {

namespace detail {

/// The work that a stage has done for a microbatch.
enum progress : unsigned char { forward = 1, input_gradient = 2, weight_gradient = 4 };

constexpr progress made_by(action_kind k) {
  if (k == action_kind::F) return forward;
  return k == action_kind::W ? weight_gradient : input_gradient;
}

/// RC302: refuses a placement on a rank that does not exist.
constexpr bool refuse_placement(report& out, const action_table& t) {
  for (const std::vector<int>* rank_of : {&t.rank_of_stage, &t.reversed_rank_of_stage})
    for (int s = 0; s < static_cast<int>(rank_of->size()); ++s)
      if (const int rank = (*rank_of)[s]; rank < 0 || rank >= t.ranks()) {
        refuse(out, 302) << "stage " << s << " is on rank " << rank << ", but ranks end at " << t.ranks() - 1;
        return true;
      }
  if (!t.bidirectional() || t.reversed_rank_of_stage.size() == t.rank_of_stage.size()) return false;
  refuse(out, 302) << "one direction has " << t.stages() << " stages, the other "
                   << t.reversed_rank_of_stage.size() << "; every stage is on one rank for each direction";
  return true;
}

/// RC302: refuses the first of a rank's actions from `i` on that belongs to another rank, or that overlaps an
/// action that it cannot overlap.
constexpr bool refuse_misplaced(report& out, const action_table& t, int rank, int i) {
  for (const int first = i, end = t.begin[rank + 1]; i < end; ++i) {
    const action& a = t.actions[i];
    const bool exists =
        a.stage >= 0 && a.stage < t.stages() && a.microbatch >= 0 && a.microbatch < t.microbatches;
    const bool is_of_stage = exists && !computes(a.kind) && t.has_stage(rank, a.stage);
    int home = -1;
    if (exists) home = is_of_stage ? rank : t.rank_of(a.stage, a.microbatch);
    const bool is_second = i > first && t.actions[i - 1].overlaps_next, is_last = i + 1 == end;
    const bool trains_nothing = t.inference && a.kind >= action_kind::reduce_grad;
    const bool overlaps =
        computes(a.kind) ? a.overlaps_next && (is_second || is_last) : a.overlaps_next || is_second;
    if (home == rank && !overlaps && !trains_nothing) continue;
    sentence& s = refuse(out, 302) << "rank " << rank;
    if (home == rank && trains_nothing)
      s << " has " << a << ", but the schedule has forwards alone; leave it out";
    else if (home == rank && !computes(a.kind))
      s << " overlaps " << a << "; an OVERLAP joins two actions of microbatches";
    else if (home == rank)
      s << " overlaps " << a << " with " << (is_second ? "two actions" : "nothing")
        << "; an OVERLAP joins two consecutive actions";
    else if (exists && t.bidirectional() && computes(a.kind))
      s << " has " << a << ", but stage " << a.stage << " is on rank " << home << " for microbatch "
        << a.microbatch;
    else if (exists && t.bidirectional())
      s << " has " << a << ", but stage " << a.stage << " is on ranks " << home << " and "
        << t.reversed_rank_of_stage[a.stage];
    else if (exists) s << " has " << a << ", but stage " << a.stage << " is on rank " << home;
    else
      s << " has " << a << ", but stages end at " << t.stages() - 1 << " and microbatches at "
        << t.microbatches - 1;
    return true;
  }
  return false;
}

/// The progress of each rank, and the work of every stage for every microbatch.
struct reached_state {
  const std::vector<int>& next;  // by rank: the first action that has not run
  const unsigned char* const
      cells;  // by stage and microbatch; also for a stage before the first and after the last
  int microbatches;
  constexpr unsigned char done(int stage, int microbatch) const {
    return cells[stage * microbatches + microbatch];
  }
};

/// The action that `a` waits for, given the work of its stage for its microbatch.
constexpr action needed_by(action a, unsigned char done) {
  a.overlaps_next = false;
  if (a.kind == action_kind::F) --a.stage;
  else if (a.kind == action_kind::W) a.kind = action_kind::I;
  else if (done & forward) ++a.stage;
  else a.kind = action_kind::F;
  return a;
}

/// A waiter in a schedule that does not end: a rank's computation, or its reductions, which run concurrently.
struct waiter {
  int rank;
  bool reduces;
  constexpr bool operator==(const waiter&) const = default;
};

/// The action that a waiter needs, the action that it would run then, and the next waiter in the chain.
struct endless_wait {
  action needs, before;
  waiter next;
};

constexpr endless_wait find_wait(const action_table& t, const reached_state& at, const reductions& reduced,
                                 waiter w) {
  const auto reduce_of = [](int stage) { return action{action_kind::reduce_grad, stage, 0}; };
  if (w.reduces) {  // the rank that shares the stage runs another stage's reduction first
    const reductions::reached* const head = reduced.head(w.rank);
    const int other = t.shares_stage(w.rank, head->stage);
    return {reduce_of(head->stage),
            reduce_of(head[1].stage),
            {other, reduced.find(other, head->stage) != nullptr}};
  }
  const action* const a = &t.actions[at.next[w.rank]];
  if (a->kind != action_kind::step) {
    const auto input = [&](const action& x) { return needed_by(x, at.done(x.stage, x.microbatch)); };
    action needs = input(*a);
    const bool is_there = at.done(needs.stage, needs.microbatch) & made_by(needs.kind);
    if (is_there) needs = input(a[1]);  // the other half of an OVERLAP waits
    return {needs, *a, {t.rank_of(needs.stage, needs.microbatch), false}};
  }
  int stage = 0;
  while (reduced.has_run(t.rank_of_stage[stage], stage)) ++stage;
  const int one = t.rank_of_stage[stage], other = t.shares_stage(one, stage);
  const bool at_one = reduced.find(one, stage), at_both = at_one && reduced.find(other, stage);
  return {reduce_of(stage),
          *a,
          {at_one && (!at_both || reduced.head(one)->stage == stage) ? other : one, at_both}};
}

/// RC304: refuses ranks that wait for each other, or a rank that waits for an action that no rank has.
constexpr void refuse_wait(report& out, const action_table& t, const reached_state& at,
                           const reductions& reduced) {
  const auto waits = [&](waiter w) { return w.reduces || at.next[w.rank] < t.begin[w.rank + 1]; };
  const auto next = [&](waiter w) { return find_wait(t, at, reduced, w).next; };
  waiter first{0, false};
  while (!waits(first)) ++first.rank;
  for (int i = 0; i < 2 * t.ranks() && waits(next(first)); ++i)
    first = next(first);  // into the cycle, if there is one
  sentence& s = refuse(out, 304);
  bool has_step = false;
  waiter w = first;
  do {
    const endless_wait x = find_wait(t, at, reduced, w);
    s << (w == first ? "" : ", ") << "rank " << w.rank << " waits for " << x.needs;
    if (!computes(x.needs.kind)) s << " on rank " << x.next.rank;
    s << " before ";
    if (x.before.overlaps_next) s << "OVERLAP(" << x.before << "," << t.actions[at.next[w.rank] + 1] << ")";
    else s << x.before;
    has_step |= !computes(x.needs.kind);
    w = x.next;
  } while (w != first && waits(w));
  s << ", for ever; "
    << (has_step ? "a STEP comes after the REDUCE_GRAD of every stage, and two ranks that share stages "
                   "reduce them in one "
                   "order"
                 : "order each rank's actions by their data: F after F of the stage before, B after B of the "
                   "stage after");
}

/// RC303: refuses a stage that lacks an action.
constexpr void refuse_missing(report& out, const action_table& t, const reached_state& at) {
  const unsigned char needed = t.inference ? forward : forward | weight_gradient;
  const int n = t.stages() * t.microbatches;
  int cell = 0;
  while (cell < n && (at.cells[cell] & needed) == needed) ++cell;
  if (cell == n) return;
  refuse(out, 303) << "stage " << cell / t.microbatches << " never runs its "
                   << (at.cells[cell] & forward ? "backward" : "forward") << " of microbatch "
                   << cell % t.microbatches << "; each stage runs F and B, or F, I and W, of each of the "
                   << t.microbatches << " microbatches";
}

/// The number of REDUCE_GRADs, or of STEPs, in a table that has them.
constexpr int count_holders(const action_table& t) {
  int n = t.stages();
  for (int s = 0; s < t.stages(); ++s) n += t.shares_stage(t.rank_of_stage[s], s) != t.rank_of_stage[s];
  return n;
}

constexpr void refuse_twice(report& out, const action& a, int rank) {
  refuse(out, 302) << "rank " << rank << " runs " << a << ", but stage " << a.stage << " has run its "
                   << (a.kind == action_kind::F ? "forward" : "backward") << " of microbatch " << a.microbatch
                   << " before";
}

/// Runs the actions of a table as far as they can run.
class table_run {
 public:
  constexpr table_run(report& out, const action_table& t)
      : out_(out),
        t_(t),
        stages_(t.stages()),
        m_(t.microbatches),
        reversed_from_(t.bidirectional() ? t.reversed_from : m_),
        rank_of_(t.rank_of_stage.data()),
        reversed_rank_of_(t.reversed_rank_of_stage.data()),
        actions_(t.actions.data()),
        bytes_(static_cast<std::size_t>(stages_ + 2) * m_, 0),
        cells_(bytes_.data() + m_),
        reduced_(t) {
    for (int mb = 0; mb < m_; ++mb) {
      cells_[mb - m_] = forward;
      cells_[stages_ * m_ + mb] = input_gradient;
    }
  }
  table_run(const table_run&) = delete;

  /// Runs a rank's actions from `i` on. Returns the first that waits or that the rank may not run. An action
  /// that runs twice is refused, and after that no rank runs any further.
  constexpr int run(int r, int i) {
    if (is_twice_) return i;
    // A compiler runs this for hundreds of thousands of actions: plain pointers, few calls, and one byte per
    // cell.
    const action* a = actions_ + i;
    const action* const end = actions_ + t_.begin[r + 1];
    unsigned char* half = nullptr;  // the cell of an OVERLAP's first action, which runs with the second
    unsigned char half_makes = 0;
    for (; a != end; ++a) {
      const action_kind kind = a->kind;
      if (kind > action_kind::W) {
        if (half || !run_of_stage(r, a, end)) break;
        continue;
      }
      const int s = a->stage, mb = a->microbatch;
      if (s < 0 || s >= stages_ || mb < 0 || mb >= m_ ||
          (mb < reversed_from_ ? rank_of_ : reversed_rank_of_)[s] != r)
        break;
      unsigned char* const cell = cells_ + (s * m_ + mb);
      const unsigned char done = *cell;
      unsigned char makes = forward;
      if (kind == action_kind::F) {
        if (!(cell[-m_] & forward)) break;
      } else if (kind == action_kind::W) {
        if (!(done & input_gradient)) break;
        makes = weight_gradient;
      } else {
        if (!(done & forward) || !(cell[m_] & input_gradient)) break;
        makes = kind == action_kind::B ? input_gradient | weight_gradient : input_gradient;
      }
      if (done & makes || (half == cell && half_makes & makes && !a->overlaps_next)) {
        is_twice_ = true;
        refuse_twice(out_, *a, r);
        break;
      }
      if (a->overlaps_next) {
        if (half) break;
        half = cell;
        half_makes = makes;
        continue;
      }
      if (half) {
        *half |= half_makes;
        half = nullptr;
        *cell |= makes;
      } else {
        *cell = done | makes;
      }
    }
    if (half) --a;
    return static_cast<int>(a - actions_);
  }

  /// Appends the reason why ranks stopped early, or the actions that the table lacks. `next` is the first
  /// action of each rank that has not run.
  constexpr void judge(const std::vector<int>& next) const {
    if (is_twice_) return;
    const reached_state at{next, cells_, m_};
    bool ended = true;
    for (int r = 0; r < t_.ranks(); ++r) {
      if (refuse_misplaced(out_, t_, r, next[r])) return;
      ended &= next[r] == t_.begin[r + 1];
    }
    const bool has_all = once_ == 0 || once_ == 2 * count_holders(t_);
    if (!(ended && has_all && !gathers_) && refuse_stage_actions(out_, t_)) return;
    if (!ended) return refuse_wait(out_, t_, at, reduced_);
    refuse_missing(out_, t_, at);
  }

 private:
  /// Runs an action of a whole stage: UNSHARD, RESHARD, REDUCE_GRAD or STEP. Returns false if it waits or is
  /// wrong.
  constexpr bool run_of_stage(int r, const action* a, const action* end) {
    if (a->overlaps_next || a->stage < 0 || a->stage >= stages_ || !t_.has_stage(r, a->stage)) return false;
    if (a->kind <= action_kind::reshard) {
      gathers_ = true;
      return true;
    }
    if (t_.inference || find_misplaced(a, end) != end) return false;
    if (a->kind == action_kind::step && reduced_.left > 0) return false;
    if (a->kind == action_kind::reduce_grad)
      reduced_.reach(r, {a->stage, static_cast<int>(a - actions_), 0, 0}, [](int, double, double) {});
    ++once_;
    return true;
  }

  report& out_;
  const action_table& t_;
  const int stages_, m_, reversed_from_;
  const int *const rank_of_, *const reversed_rank_of_;
  const action* const actions_;
  std::vector<unsigned char> bytes_;
  unsigned char* const cells_;  // same as in reached_state
  reductions reduced_;
  int once_ = 0;  // number of REDUCE_GRADs and STEPs
  bool gathers_ = false, is_twice_ = false;
};

}  // namespace detail

/// Appends the faults that keep the table from running: an action out of place or twice (RC302), a missing
/// action (RC303), a wait that never ends (RC304), incomplete weights or gradients (RC310). Each rank in turn
/// runs as far as it can, until none moves.
constexpr void check_actions(report& out, const action_table& t) {
  if (detail::refuse_placement(out, t)) return;
  detail::table_run ranks(out, t);
  ranks.judge(detail::walk(t.begin, [&](int r, int i) { return ranks.run(r, i); }));
}

}  // namespace rankc
