// SPDX-License-Identifier: Apache-2.0
// The steady state of a schedule, in which every rank repeats the same actions for one microbatch after the
// other. It can be repeated for any number of microbatches without building their schedule again.
#pragma once
#include <rankc/schedule/actions.hpp>

namespace rankc {

/// Extends a schedule to more microbatches by repeating its steady state. `t` must run every stage's passes
/// in the order of the microbatches and pass check_actions. `begins` are the begins of its actions.
/// Errors: an empty table if no part repeats.
constexpr action_table repeat_steady_state(const action_table& t, const std::vector<double>& begins,
                                           int microbatches) {
  constexpr double rounding = 1e-6;
  const int ranks = t.ranks(), m = t.microbatches, more = microbatches - m;
  const double* const begin = begins.data();
  // Three cuts through all rows, at the forwards of three microbatches on the last stage. There are two
  // periods between them.
  std::vector<double> at(static_cast<std::size_t>(m), 0);
  const int last = t.stages() - 1, last_rank = t.rank_of_stage[last];
  for (int i = t.begin[last_rank]; i < t.begin[last_rank + 1]; ++i)
    if (const action& a = t.actions[i]; a.kind == action_kind::F && a.stage == last)
      at[a.microbatch] = begin[i];
  std::vector<int> cut = t.begin;  // by rank: its first action that begins at the first cut or later
  for (int mb = 0; mb + 2 < m; ++mb) {
    const double second = at[mb + 1], third = at[mb + 2], period = second - at[mb];
    bool repeats = period < third - second + rounding && period > third - second - rounding;
    for (int r = 0; r < ranks; ++r) {
      const int end = t.begin[r + 1], length = (end - t.begin[r]) / m;
      int& first = cut[r];
      while (first < end && begin[first] < at[mb] - rounding) ++first;
      repeats = repeats && first + 2 * length < end && begin[first + length] > second - rounding &&
                begin[first + 2 * length] > third - rounding;
      for (int i = first; repeats && i < first + length; ++i) {
        const action &a = t.actions[i], &b = t.actions[i + length];
        const double later = begin[i + length] - begin[i] - period;
        repeats = a.kind == b.kind && a.stage == b.stage && a.microbatch + 1 == b.microbatch;
        repeats = repeats && later < rounding && later > -rounding;
      }
    }
    if (!repeats) continue;
    action_table all = t;
    all.microbatches = microbatches;
    all.actions.assign(t.actions.size() / m * microbatches, action{});
    action* to = all.actions.data();
    for (int r = 0; r < ranks; ++r) {
      const int length = (t.begin[r + 1] - t.begin[r]) / m;
      all.begin[r] = static_cast<int>(to - all.actions.data());
      const action* from = t.actions.data() + t.begin[r];
      for (const action* const end = t.actions.data() + cut[r] + length; from != end;) *to++ = *from++;
      for (int left = more * length; left > 0; --left, ++to) {
        *to = to[-length];
        ++to->microbatch;
      }
      for (const action* const end = t.actions.data() + t.begin[r + 1]; from != end; ++to) {
        *to = *from++;
        to->microbatch += more;
      }
    }
    all.begin[ranks] = static_cast<int>(to - all.actions.data());
    return all;
  }
  return {};
}

}  // namespace rankc
