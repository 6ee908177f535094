// SPDX-License-Identifier: Apache-2.0
// Checks row-pipelined pairs: a collective and a GEMM that the certificate runs at once, in parts of rows.
// The earlier op of a pair runs until the later has ended. The collective also overlaps the ops between the
// two. None of these ops waits for another stream once the first has started, and other streams wait only for
// the last op of the pair.
#include "schedule.hpp"

#include <algorithm>
#include <set>
#include <vector>

namespace rankc::codegen::verifying {

namespace {

bool share_bytes(const std::vector<access>& a, const std::vector<access>& b) {
  for (const access& x : a)
    for (const access& y : b)
      if (x.begin < y.end && y.begin < x.end) return true;
  return false;
}
bool share_values(const std::vector<access>& a, const std::vector<access>& b) {
  for (const access& x : a)
    for (const access& y : b)
      if (x.value == y.value) return true;
  return false;
}

/// Checks the ops from the earlier to the later of a pair: a collective `me` and its GEMM.
void check_at_once(const step& d, const std::vector<listed_op>& all, id me, int first, int last) {
  const listed_op &mine = all[me.index], &earlier = all[first], &later = all[last];
  const auto& partner = me.index == first ? later : earlier;
  if (!share_values(earlier.writes, later.reads))
    refuse(d, me,
           "RC7190: certificate, rank {}: op \"{}\" is row-pipelined with op \"{}\", but the later of the "
           "two uses nothing that the earlier makes",
           partner.name);
  if (share_bytes(later.writes, earlier.reads) || share_bytes(later.writes, earlier.writes))
    refuse(d, me,
           "RC7191: certificate, rank {}: op \"{}\" is row-pipelined with op \"{}\", and the later of the "
           "two writes bytes that the earlier uses",
           partner.name);
  for (int k = first + 1; k < last; ++k) {
    const listed_op& x = all[k];
    if (x.kind != op_kind::compute || x.stream != mine.stream)
      refuse(d, me,
             "RC7192: certificate, rank {}: op \"{}\" is row-pipelined while op \"{}\" runs, which is not a "
             "kernel on its stream",
             x.name);
    for (const auto* touched : {&mine.reads, &mine.writes})
      if (share_bytes(x.reads, *touched) || share_bytes(x.writes, *touched))
        refuse(d, me,
               "RC7193: certificate, rank {}: op \"{}\" is row-pipelined while op \"{}\" runs, and both use "
               "the same bytes",
               x.name);
  }
  for (int k = first + 1; k <= last; ++k)
    if (!all[k].waits.empty())
      refuse(d, me,
             "RC7194: certificate, rank {}: op \"{}\" is row-pipelined, and op \"{}\" waits, which is not "
             "the first of the ops that run at once",
             all[k].name);
}

}  // namespace

void check_by_rows(const step& d) {
  for (int rank = 0; rank < static_cast<int>(d.ranks.size()); ++rank) {
    const auto& all = program_of(d, rank).ops;
    int last_paired = -1;
    std::set<int> gone;  // values whose bytes the received rows overwrite
    std::set<int> open;  // ops of a pair, without its last; their end does not tell that the pair has ended
    for (int i = 0; i < static_cast<int>(all.size()); ++i) {
      for (int before : all[i].waits)
        if (open.count(before))
          refuse(d, {rank, i},
                 "RC7195: certificate, rank {}: op \"{}\" waits for op {}, which is in a row-pipelined pair "
                 "that is not done when that op ends",
                 before);
      for (const access& x : all[i].reads)
        if (gone.count(x.value))
          refuse(d, {rank, i},
                 "RC7196: certificate, rank {}: op \"{}\" reads bytes {}..{}, which a row-pipelined "
                 "reduce_scatter has overwritten",
                 x.begin, x.end);
      const int by = all[i].by_rows;
      if (by == 0) continue;
      const id me{rank, i};
      const bool gathers = all[i].does == collective_kind::all_gather;
      if (!gathers && all[i].does != collective_kind::reduce_scatter)
        refuse(d, me,
               "RC7197: certificate, rank {}: op \"{}\" is row-pipelined and of kind {}: only an all_gather "
               "or a reduce_scatter may be row-pipelined",
               collective_kind_names[static_cast<int>(all[i].does)]);
      const int partner = gathers ? i + by : i - by, first = std::min(i, partner),
                last = std::max(i, partner);
      if (first < 0 || last >= static_cast<int>(all.size()) || all[partner].kind != op_kind::compute ||
          all[partner].stream != all[i].stream)
        refuse(d, me,
               "RC7198: certificate, rank {}: op \"{}\" is row-pipelined, but the op {} places away is not a "
               "kernel on its stream",
               by);
      if (first <= last_paired)
        refuse(d, me,
               "RC7199: certificate, rank {}: op \"{}\" is row-pipelined with an op that is row-pipelined "
               "with another");
      last_paired = last;
      check_at_once(d, all, me, first, last);
      for (int k = first; k < last; ++k) open.insert(k);
      if (!gathers)
        for (const access& x : all[i].reads) gone.insert(x.value);
    }
  }
}

}  // namespace rankc::codegen::verifying
