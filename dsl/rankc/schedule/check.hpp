// SPDX-License-Identifier: Apache-2.0
// The proof of a schedule: its actions can run to the end, each once and in data order.
#pragma once
#include <rankc/schedule/actions.hpp>

namespace rankc {

namespace detail {

/// What a stage has done with a microbatch.
enum progress : unsigned char { forward = 1, input_gradient = 2, weight_gradient = 4 };

constexpr progress made_by(action_kind k) {
  return k == action_kind::F ? forward : k == action_kind::W ? weight_gradient : input_gradient;
}

/// RC302: the first of a rank's actions from `i` on that is not its own to run.
constexpr bool refuse_misplaced(report& out, const action_table& t, int rank, int i) {
  for (; i < t.begin[rank + 1]; ++i) {
    const action& a = t.actions[i];
    const bool exists = a.stage >= 0 && a.stage < t.stages() && a.microbatch >= 0 && a.microbatch < t.microbatches;
    if (exists && t.rank_of_stage[a.stage] == rank) continue;
    sentence& s = refuse(out, 302) << "rank " << rank << " has " << a << ", but ";
    if (exists) s << "stage " << a.stage << " is on rank " << t.rank_of_stage[a.stage];
    else s << "stages end at " << t.stages() - 1 << " and microbatches at " << t.microbatches - 1;
    return true;
  }
  return false;
}

/// What an action waits for, given what its stage has done with its microbatch.
constexpr action needed_by(action a, unsigned char done) {
  if (a.kind == action_kind::F) --a.stage;
  else if (a.kind == action_kind::W) a.kind = action_kind::I;
  else if (done & forward) ++a.stage;
  else a.kind = action_kind::F;
  return a;
}

/// RC304: the ranks that wait for each other, or the one that waits for what no rank has.
constexpr void refuse_wait(report& out, const action_table& t, const std::vector<int>& reached, const unsigned char* cells) {
  auto waits = [&](int rank) { return reached[rank] < t.begin[rank + 1]; };
  auto before = [&](int rank) { return t.actions[reached[rank]]; };
  auto needed = [&](int rank) {
    const action a = before(rank);
    return needed_by(a, cells[a.stage * t.microbatches + a.microbatch]);
  };
  auto next = [&](int rank) { return t.rank_of_stage[needed(rank).stage]; };
  int first = 0;
  while (!waits(first)) ++first;
  for (int i = 0; i < t.ranks() && waits(next(first)); ++i) first = next(first);  // into the cycle, if there is one
  sentence& s = refuse(out, 304);
  int rank = first;
  do {
    s << (rank == first ? "" : ", ") << "rank " << rank << " waits for " << needed(rank) << " before " << before(rank);
    rank = next(rank);
  } while (rank != first && waits(rank));
  s << ", for ever; order each rank's actions by their data: F after F of the stage before, B after B of the stage after";
}

}  // namespace detail

/// Append what keeps the table from running: an action out of place or twice (RC302), one missing (RC303), a wait
/// that never ends (RC304). Every rank runs as far as it can, in turn, until none moves.
constexpr void check_actions(report& out, const action_table& t) {
  // A compiler runs this for tens of thousands of actions: so plain pointers, and one byte per stage and microbatch.
  const int stages = t.stages(), m = t.microbatches, ranks = t.ranks();
  std::vector<unsigned char> bytes(static_cast<std::size_t>(stages) * m, 0);
  std::vector<int> reached = t.begin;
  unsigned char* const cells = bytes.data();
  const action* const actions = t.actions.data();
  const int* const rank_of_stage = t.rank_of_stage.data();
  for (int s = 0; s < stages; ++s)
    if (rank_of_stage[s] < 0 || rank_of_stage[s] >= ranks) {
      refuse(out, 302) << "stage " << s << " is on rank " << rank_of_stage[s] << ", but ranks end at " << ranks - 1;
      return;
    }
  int forwards = 0, backwards = 0;
  for (bool moved = true; moved;) {
    moved = false;
    for (int r = 0; r < ranks; ++r) {
      int i = reached[r];
      for (const int end = t.begin[r + 1]; i < end; ++i) {
        const action& a = actions[i];
        const int s = a.stage, mb = a.microbatch;
        if (s < 0 || s >= stages || mb < 0 || mb >= m || rank_of_stage[s] != r) break;
        unsigned char* const cell = cells + s * m + mb;
        const unsigned char done = *cell;
        if (done & detail::made_by(a.kind)) {
          refuse(out, 302) << "rank " << r << " runs " << a << ", but stage " << s << " has run its "
                           << (a.kind == action_kind::F ? "forward" : "backward") << " of microbatch " << mb << " before";
          return;
        }
        if (a.kind == action_kind::F) {
          if (s > 0 && !(cell[-m] & detail::forward)) break;
          *cell = done | detail::forward;
          ++forwards;
        } else if (a.kind == action_kind::W) {
          if (!(done & detail::input_gradient)) break;
          *cell = done | detail::weight_gradient;
          ++backwards;
        } else {
          if (!(done & detail::forward) || (s + 1 < stages && !(cell[m] & detail::input_gradient))) break;
          *cell = done | detail::input_gradient;
          if (a.kind == action_kind::B) {
            *cell |= detail::weight_gradient;
            ++backwards;
          }
        }
      }
      moved |= i != reached[r];
      reached[r] = i;
    }
  }
  for (int r = 0; r < ranks; ++r)
    if (detail::refuse_misplaced(out, t, r, reached[r])) return;
  for (int r = 0; r < ranks; ++r)
    if (reached[r] != t.begin[r + 1]) return detail::refuse_wait(out, t, reached, cells);
  if (forwards == stages * m && (t.inference || backwards == stages * m)) return;
  for (int s = 0; s < stages; ++s)
    for (int mb = 0; mb < m; ++mb) {
      const bool forward = cells[s * m + mb] & detail::forward, backward = cells[s * m + mb] & detail::weight_gradient;
      if (forward && (t.inference || backward)) continue;
      refuse(out, 303) << "stage " << s << " never runs its " << (forward ? "backward" : "forward") << " of microbatch "
                       << mb << "; each stage runs F and B, or F, I and W, of each of the " << m << " microbatches";
      return;
    }
}

}  // namespace rankc
