// SPDX-License-Identifier: Apache-2.0
// Ops that a certificate says go at once, in parts of rows: of each pair the earlier is at work until the later has ended, and the
// collective while what is between the two runs.
#include "verify_schedule.hpp"

#include <set>

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

}  // namespace

void check_by_rows(const document& d) {
  for (int rank = 0; rank < static_cast<int>(d.workers.size()); ++rank) {
    const auto& all = routine_of(d, rank).instructions;
    int last_paired = -1;
    std::set<int> gone;  // values whose bytes what arrived was put in
    for (int i = 0; i < static_cast<int>(all.size()); ++i) {
      for (const range& x : all[i].reads)
        if (gone.count(x.value)) refuse(d, {rank, i}, "reads bytes that were dealt out by rows");
      const int by = all[i].by_rows;
      if (by == 0) continue;
      const id me{rank, i};
      const bool gathers = all[i].does == "all_gather";
      if (!gathers && all[i].does != "reduce_scatter") refuse(d, me, "is of kind {} and goes by rows", all[i].does);
      const int partner = gathers ? i + by : i - by, first = gathers ? i : i - by;
      if (partner < 0 || partner >= static_cast<int>(all.size()) || all[partner].kind != "compute" || all[partner].stream != all[i].stream)
        refuse(d, me, "goes by rows, and no kernel is beside it on its stream");
      if (first <= last_paired) refuse(d, me, "goes by rows with an op that is of another pair");
      last_paired = first + by;
      const instruction &earlier = all[first], &later = all[first + by];
      if (!share_values(earlier.writes, later.reads)) refuse(d, me, "goes by rows with \"{}\", and takes or gives nothing there", all[partner].name);
      if (share_bytes(later.writes, earlier.reads) || share_bytes(later.writes, earlier.writes))
        refuse(d, me, "goes by rows with \"{}\", and the later writes bytes of the earlier", all[partner].name);
      for (int k = first + 1; k < first + by; ++k) {
        if (all[k].kind != "compute" || all[k].stream != all[i].stream) refuse(d, me, "goes by rows, and \"{}\" is no kernel on its stream", all[k].name);
        for (const auto* mine : {&all[i].reads, &all[i].writes})
          if (share_bytes(all[k].reads, *mine) || share_bytes(all[k].writes, *mine))
            refuse(d, me, "goes by rows while \"{}\" runs, and both touch the same bytes", all[k].name);
      }
      if (!gathers)
        for (const range& x : all[i].reads) gone.insert(x.value);
    }
  }
}

}  // namespace rankc::codegen::verifying
