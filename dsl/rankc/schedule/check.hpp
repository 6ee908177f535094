// SPDX-License-Identifier: Apache-2.0
// The proof of a schedule: its actions can run to the end, each once and in data order.
#pragma once
#include <rankc/schedule/reductions.hpp>
#include <rankc/schedule/stage_actions.hpp>
#include <rankc/schedule/walk.hpp>

namespace rankc {

namespace detail {

/// What a stage has done with a microbatch.
enum progress : unsigned char { forward = 1, input_gradient = 2, weight_gradient = 4 };

constexpr progress made_by(action_kind k) {
  if (k == action_kind::F) return forward;
  return k == action_kind::W ? weight_gradient : input_gradient;
}

/// RC302: the placement names a rank that there is not.
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

/// RC302: the first of a rank's actions from `i` on that is not its own to run, or that overlaps what it
/// cannot.
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
      s << " overlaps " << a << "; an OVERLAP is of two actions of a microbatch";
    else if (home == rank)
      s << " overlaps " << a << " with " << (is_second ? "two actions" : "nothing")
        << "; an OVERLAP is of two actions that follow each other";
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

/// How far each rank has come, and what every stage has done with every microbatch.
struct reached_state {
  std::vector<int> next;  // of each rank, the first action that has not run
  const unsigned char* const
      cells;  // of stages and microbatches; also of a stage before the first and after the last
  int microbatches;
  constexpr unsigned char done(int stage, int microbatch) const {
    return cells[stage * microbatches + microbatch];
  }
};

/// What an action waits for, given what its stage has done with its microbatch.
constexpr action needed_by(action a, unsigned char done) {
  a.overlaps_next = false;
  if (a.kind == action_kind::F) --a.stage;
  else if (a.kind == action_kind::W) a.kind = action_kind::I;
  else if (done & forward) ++a.stage;
  else a.kind = action_kind::F;
  return a;
}

/// Who waits in a schedule that does not end: a rank's computation, or its reductions, which run beside it.
struct waiter {
  int rank;
  bool reduces;
  constexpr bool operator==(const waiter&) const = default;
};

/// What a waiter waits for, what it would run then, and who has to do it.
struct endless_wait {
  action needs, before;
  waiter next;
};

constexpr endless_wait find_wait(const action_table& t, const reached_state& at, const reductions& reduced,
                                 waiter w) {
  const auto reduce_of = [](int stage) { return action{action_kind::reduce_grad, stage, 0}; };
  if (w.reduces) {  // another stage's is before it on the rank that shares its stage
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

/// RC304: the ranks that wait for each other, or the one that waits for what no rank has.
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

/// RC303: what a stage never does.
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

/// How many REDUCE_GRADs, or STEPs, a table has if it has any.
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

}  // namespace detail

/// Append what keeps the table from running: an action out of place or twice (RC302), one missing (RC303), a
/// wait that never ends (RC304), weights or gradients that are not whole (RC310). Every rank runs as far as
/// it can, in turn, until none moves.
constexpr void check_actions(report& out, const action_table& t) {
  using namespace detail;
  if (refuse_placement(out, t)) return;
  // A compiler runs this for hundreds of thousands of actions: plain pointers, no calls, and one byte per
  // cell.
  const int stages = t.stages(), m = t.microbatches;
  std::vector<unsigned char> bytes(static_cast<std::size_t>(stages + 2) * m, 0);
  for (int mb = 0; mb < m; ++mb) {
    bytes[mb] = forward;
    bytes[(stages + 1) * m + mb] = input_gradient;
  }
  unsigned char* const cells = bytes.data() + m;
  const action* const actions = t.actions.data();
  const int* const rank_of = t.rank_of_stage.data();
  const int* const reversed_rank_of = t.reversed_rank_of_stage.data();
  const int reversed_from = t.bidirectional() ? t.reversed_from : m;
  reductions reduced(t);
  int once = 0;  // REDUCE_GRADs and STEPs
  bool gathers = false, is_twice = false;
  const auto run = [&](int r, int i) {
    if (is_twice) return i;
    const action* a = actions + i;
    const action* const end = actions + t.begin[r + 1];
    unsigned char* half = nullptr;  // the cell of an OVERLAP's first action, which is made with the second's
    unsigned char half_makes = 0;
    for (; a != end; ++a) {
      const action_kind kind = a->kind;
      const int s = a->stage, mb = a->microbatch;
      if (kind > action_kind::W) {
        if (half || a->overlaps_next || s < 0 || s >= stages || !t.has_stage(r, s)) break;
        if (kind <= action_kind::reshard) {
          gathers = true;
          continue;
        }
        if (t.inference || find_misplaced(a, end) != end) break;
        if (kind == action_kind::step && reduced.left > 0) break;
        if (kind == action_kind::reduce_grad)
          reduced.reach(r, {s, static_cast<int>(a - actions), 0, 0}, [](int, double, double) {});
        ++once;
        continue;
      }
      if (s < 0 || s >= stages || mb < 0 || mb >= m ||
          (mb < reversed_from ? rank_of : reversed_rank_of)[s] != r)
        break;
      unsigned char* const cell = cells + (s * m + mb);
      const unsigned char done = *cell;
      unsigned char makes = forward;
      if (kind == action_kind::F) {
        if (!(cell[-m] & forward)) break;
      } else if (kind == action_kind::W) {
        if (!(done & input_gradient)) break;
        makes = weight_gradient;
      } else {
        if (!(done & forward) || !(cell[m] & input_gradient)) break;
        makes = kind == action_kind::B ? input_gradient | weight_gradient : input_gradient;
      }
      if (done & makes || (half == cell && half_makes & makes && !a->overlaps_next)) {
        is_twice = true;
        refuse_twice(out, *a, r);
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
    return static_cast<int>(a - actions);
  };
  const reached_state at{walk(t.begin, run), cells, m};
  if (is_twice) return;
  bool ended = true;
  for (int r = 0; r < t.ranks(); ++r) {
    if (refuse_misplaced(out, t, r, at.next[r])) return;
    ended &= at.next[r] == t.begin[r + 1];
  }
  const bool has_all = once == 0 || once == 2 * count_holders(t);
  if (!(ended && has_all && !gathers) && refuse_stage_actions(out, t)) return;
  if (!ended) return refuse_wait(out, t, at, reduced);
  refuse_missing(out, t, at);
}

}  // namespace rankc
