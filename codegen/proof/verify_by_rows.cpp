// SPDX-License-Identifier: Apache-2.0
// Ops that a certificate says go at once, in parts of rows: of each pair the earlier is at work until the
// later has ended, and the collective while what is between the two runs. None of them waits for other
// streams once the first is at work, and no stream for what is gathered but by the product.
#include "verify_schedule.hpp"

#include <algorithm>
#include <set>
#include <vector>

namespace rankc::codegen::verifying {

namespace {

bool share_bytes(const std::vector<range>& a, const std::vector<range>& b) {
  for (const range& x : a)
    for (const range& y : b)
      if (x.begin < y.end && y.begin < x.end) return true;
  return false;
}
bool share_values(const std::vector<range>& a, const std::vector<range>& b) {
  for (const range& x : a)
    for (const range& y : b)
      if (x.value == y.value) return true;
  return false;
}

/// The ops from the earlier of a collective `me` and its product to the later.
void check_at_once(const document& d, const std::vector<instruction>& all, id me, int first, int last) {
  const instruction &mine = all[me.index], &earlier = all[first], &later = all[last];
  const auto& partner = me.index == first ? later : earlier;
  if (!share_values(earlier.writes, later.reads))
    refuse(d, me, "goes by rows with \"{}\", and takes or gives nothing there", partner.name);
  if (share_bytes(later.writes, earlier.reads) || share_bytes(later.writes, earlier.writes))
    refuse(d, me, "goes by rows with \"{}\", and the later writes bytes of the earlier", partner.name);
  for (int k = first + 1; k < last; ++k) {
    const instruction& x = all[k];
    if (x.kind != "compute" || x.stream != mine.stream)
      refuse(d, me, "goes by rows, and \"{}\" is no kernel on its stream", x.name);
    for (const auto* touched : {&mine.reads, &mine.writes})
      if (share_bytes(x.reads, *touched) || share_bytes(x.writes, *touched))
        refuse(d, me, "goes by rows while \"{}\" runs, and both touch the same bytes", x.name);
  }
  for (int k = first + 1; k <= last; ++k)
    if (!all[k].waits.empty())
      refuse(d, me, "goes by rows, and \"{}\" waits, which is not the first of those at work", all[k].name);
}

}  // namespace

void check_by_rows(const document& d) {
  for (int rank = 0; rank < static_cast<int>(d.workers.size()); ++rank) {
    const auto& all = routine_of(d, rank).instructions;
    int last_paired = -1;
    std::set<int> gone;  // values whose bytes what arrived was put in
    std::set<int> open;  // instructions whose end does not say that rows have arrived
    for (int i = 0; i < static_cast<int>(all.size()); ++i) {
      for (int before : all[i].waits)
        if (open.count(before))
          refuse(d, {rank, i}, "waits for op {}, and rows that go with it may be under way then", before);
      for (const range& x : all[i].reads)
        if (gone.count(x.value)) refuse(d, {rank, i}, "reads bytes that were dealt out by rows");
      const int by = all[i].by_rows;
      if (by == 0) continue;
      const id me{rank, i};
      const bool gathers = all[i].does == "all_gather";
      if (!gathers && all[i].does != "reduce_scatter")
        refuse(d, me, "is of kind {} and goes by rows", all[i].does);
      const int partner = gathers ? i + by : i - by, first = std::min(i, partner),
                last = std::max(i, partner);
      if (first < 0 || last >= static_cast<int>(all.size()) || all[partner].kind != "compute" ||
          all[partner].stream != all[i].stream)
        refuse(d, me, "goes by rows, and no kernel is beside it on its stream");
      if (first <= last_paired) refuse(d, me, "goes by rows with an op that is of another pair");
      last_paired = last;
      check_at_once(d, all, me, first, last);
      if (gathers)
        for (int k = first; k < last; ++k) open.insert(k);
      else
        for (const range& x : all[i].reads) gone.insert(x.value);
    }
  }
}

}  // namespace rankc::codegen::verifying
