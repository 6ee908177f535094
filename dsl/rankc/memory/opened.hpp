// SPDX-License-Identifier: Apache-2.0
// The computing lanes and communicators that the ranks of a pipeline coordinate open on their GPUs.
#pragma once
#include <rankc/mesh/communicators.hpp>
#include <rankc/mesh/regions.hpp>
#include <rankc/contract/device_memory.hpp>
#include <rankc/schedule/neighbours.hpp>

namespace rankc {

/// True if a pipeline rank overlaps actions.
constexpr bool overlaps(const action_table& t, int rank) {
  for (int i = t.begin[rank]; i < t.begin[rank + 1]; ++i)
    if (t.actions[i].overlaps_next) return true;
  return false;
}

/// The lanes and communicators of a rank of a pipeline coordinate. `ties`: another coordinate holds
/// parameters that it also holds. `rounds`: reductions over dp are sent in bf16. `of_batch`: layers reduce
/// over all ranks that have tokens of the batch. `beside_rings`: they communicate over cp concurrently with
/// its rings.
constexpr cuda::opened opened_by(const layout& l, const action_table& t, int rank, bool ties,
                                 bool rounds = false, bool of_batch = false, bool beside_rings = false) {
  cuda::opened o;
  o.groups = ties + beside_rings + (l.groups(axis::fsdp).size() > 1) +
             (l.dims().ep > 1 && l.groups(axis::efsdp).size() > 1);  // a second one for shards
  for (const planned_communicator& c : communicators_of_step(l)) o.groups += count_purposes(c);
  if (rounds) o.rounding_lanes = 1;
  if (overlaps(t, rank)) {
    ++o.computing_lanes;
    for (const axis_row& r : axis_rows)
      if (is_within_layers(r.carries.purpose) && (is_dense(r.id) || spreads_experts(l.dims())))
        o.groups += l.groups(r.id).size() > 1;
  }
  for (const axis a : {axis::fsdp, axis::replicas})
    if (of_batch && l.groups(a).size() > 1) o.groups += 1 + overlaps(t, rank);
  for (const bool sends : {true, false})
    o.edges += static_cast<int>(detail::find_neighbours(t, rank, sends).size());
  return o;
}

}  // namespace rankc
