// SPDX-License-Identifier: Apache-2.0
// RC103: dims that may be declared but that no pass lowers yet.
#pragma once
#include <rankc/base/diagnostic.hpp>
#include <rankc/mesh/dims.hpp>
#include <rankc/mesh/regions.hpp>

namespace rankc::detail {

/// The names of the degrees that are lowered for all values or for tokens: "dp_replicate, tp and pp".
constexpr sentence lowered_degrees() {
  sentence names;
  int all = 0, i = 0;
  for (const named_degree& a : written_degrees) all += row(a.along).lowered != lowered_values::nothing;
  for (const named_degree& a : written_degrees)
    if (row(a.along).lowered != lowered_values::nothing) names << list_separator(i++, all) << a.name;
  return names;
}

/// RC103: expert layouts that no pass lowers yet.
constexpr void check_experts_lowered(report& out, const parallel_dims& d) {
  constexpr std::string_view region = name(region_axis);
  const int of_region = region_ranks(d);
  if (d.ep == 1) {
    if (d.etp > 1 && d.etp != of_region)
      refuse(out, 103) << "etp=" << d.etp << " with ep=1 and " << region << "=" << of_region
                       << " is not lowered in this version; experts that are on all ranks "
                       << "are split over " << region << ": set etp=" << of_region << ", or ep above 1";
    return;
  }
  if (repeats_tokens(d) && d.etp > 1)
    refuse(out, 103) << "expert_layout=independent with etp=" << d.etp
                     << " is not lowered in this version: set etp=1, or expert_layout=folded";
  else if (repeats_tokens(d) && replicates_over_cp(d))
    refuse(out, 103) << "expert_layout=independent with cp_weights=replicate and cp=" << d.cp
                     << " is not lowered in this version: set cp_weights=shard, or expert_layout=folded";
  else if (of_region > 1 && !d.sequence_parallel)
    refuse(out, 103) << "ep=" << d.ep << " with " << region << "=" << of_region
                     << " and without sequence_parallel is not lowered in this version, because each rank of "
                     << region
                     << " would send the same tokens to the experts: set sequence_parallel=true, or "
                     << region << "=1";
  else if (replicates_over_cp(d) && d.dp_replicate > 1 && !spreads_experts_over_replicas(d))
    refuse(out, 103) << "cp_weights=replicate with ep=" << d.ep << " and dp_replicate=" << d.dp_replicate
                     << " is not lowered in this version, because ranks of cp "
                     << "have different experts and replicas have the same: set cp_weights=shard, or "
                        "expert_layout=folded_over_replicas";
  for (const axis_row& r : axis_rows)
    if (holds_replicas(r) && r.id != axis::dp_replicate && d.*r.degree > 1 &&
        !spreads_experts_over_replicas(d))
      refuse(out, 103) << r.name << "=" << d.*r.degree << " with ep=" << d.ep
                       << " and dp_replicate=" << d.dp_replicate
                       << " is not lowered in this version, for ranks of " << r.name
                       << " have other experts and replicas the same: set " << r.name
                       << "=1, or expert_layout=folded_over_replicas";
}

/// RC103: degrees that may be declared but that no pass lowers yet.
constexpr void check_lowered(report& out, const parallel_dims& d) {
  for (const named_degree& a : all_degrees)
    if (d.*a.degree > 1 && row(a.along).lowered == lowered_values::nothing)
      refuse(out, 103) << a.name << "=" << d.*a.degree << " is not lowered in this version; "
                       << lowered_degrees().view() << " are: set " << a.name << "=1";
  if (d.ulysses > 1 && d.ulysses < d.cp && d.cp_attention == cp_attention::gather)
    refuse(out, 103) << "ulysses=" << d.ulysses << " with cp=" << d.cp << " and cp_attention=gather is "
                     << d.cp / d.ulysses
                     << " groups that exchange heads and gather keys and values, which is not lowered in "
                        "this version: set "
                     << "cp_attention=ring, ulysses=1 or ulysses=" << d.cp;
  check_experts_lowered(out, d);
}

}  // namespace rankc::detail
