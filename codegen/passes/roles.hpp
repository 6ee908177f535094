// SPDX-License-Identifier: Apache-2.0
// The runtime's roles of communicators, by axis and purpose.
#pragma once
#include <rankc/mesh/communicators.hpp>
#include <rankc/mesh/regions.hpp>
#include <rankc/runtime/program.hpp>

#include <optional>

namespace rankc::codegen {

/// The role of communicators that serve a purpose over the groups of an axis. Sums of gradients, norms and
/// losses over the ranks of an axis use the communicator of its groups. A sum over several axes uses their
/// communicators one after the other.
struct role_row {
  axis over;
  purpose as;
  runtime::over role;
};
inline constexpr role_row role_rows[]{{axis::pp, purpose::messages, runtime::over::pp},
                                      {axis::replicas, purpose::gradients, runtime::over::dp},
                                      {axis::fsdp, purpose::weights, runtime::over::shard},
                                      {axis::ring, purpose::keys_and_values, runtime::over::cp},
                                      {axis::ulysses, purpose::heads, runtime::over::ulysses},
                                      {region_axis, purpose::activations, runtime::over::tp},
                                      {axis::ep, purpose::tokens, runtime::over::ep},
                                      {expert_region_axis, purpose::activations, runtime::over::etp},
                                      {axis::efsdp, purpose::weights, runtime::over::efsdp}};

constexpr std::optional<runtime::over> find_role(axis over, purpose as) {
  for (const role_row& r : role_rows)
    if (r.over == over && r.as == as) return r.role;
  return std::nullopt;
}

/// The role of an axis' groups. For cp it is that of its rings, which also communicates for all of cp.
/// Errors: std::logic_error if it is not lowered.
runtime::over role_over(axis);

/// The roles over which results of a rank's tokens, such as the loss, are summed, in this order.
std::vector<runtime::over> roles_of_tokens(const parallel_dims&);

/// The role that names a lowered axis in the runtime: pp, dp, shard, cp, tp, ep, etp.
/// Errors: std::logic_error if the axis is not lowered.
runtime::over role_along(axis);

constexpr const char* role_name(runtime::over r) { return runtime::over_names[static_cast<int>(r)]; }

static_assert(
    [] {
      for (const communicator_purpose& c : communicator_purposes)
        for (const axis_row& r : axis_rows)
          if (c.as != purpose::loss && r.lowered != lowered_values::nothing &&
              parts_of(c.over).has(parts_of(r.id)) && !find_role(c.over, c.as))
            return false;
      return true;
    }(),
    "an axis is lowered, and what its groups communicate has no role: give it one in role_rows");

}  // namespace rankc::codegen
