// SPDX-License-Identifier: Apache-2.0
#include "hash_places.hpp"

#include <algorithm>
#include <map>
#include <string>

namespace rankc::codegen {

using runtime::hashed_places;

namespace {

/// The first byte of a rank's tensors of a kind, at the start or at the end of its step.
std::size_t place_of(const rank_program& p, holding_kind kind) {
  std::size_t first = hashed_places::none;
  const auto look = [&](const op& o, const std::vector<access>& accesses) {
    for (std::size_t i = 0; i < std::min(o.holds.size(), accesses.size()); ++i)
      if (o.holds[i].kind == kind) first = std::min(first, accesses[i].begin);
  };
  look(p.ops.front(), p.ops.front().writes);
  look(p.ops.back(), p.ops.back().reads);
  return first;
}

runtime::kept_kind kept_kind_of(holding_kind k) {
  switch (k) {
    case holding_kind::working_copy:
      return runtime::kept_kind::working_copy;
    case holding_kind::first_moment:
      return runtime::kept_kind::first_moment;
    case holding_kind::second_moment:
      return runtime::kept_kind::second_moment;
    case holding_kind::rotary:
      return runtime::kept_kind::rotary;
    default:
      return runtime::kept_kind::weight;
  }
}

/// The sum of the hashes of the tensors that a rank keeps from step to step, without padding.
std::uint64_t hash_of_kept(const op& begin) {
  std::uint64_t all = 0;
  for (std::size_t i = 0; i < std::min(begin.holds.size(), begin.writes.size()); ++i) {
    const holding& h = begin.holds[i];
    if (!is_kept(h.kind) || h.kind == holding_kind::padding) continue;
    all += runtime::hash_of(runtime::hashed_tensor{kept_kind_of(h.kind), h.name, begin.writes[i].begin,
                                                   h.positions, h.dim, h.theta, h.scaling});
  }
  return all;
}

/// The sum of the hashes of the declared inputs, each by its first byte.
std::uint64_t hash_of_inputs(const op& begin) {
  std::map<std::string, std::size_t> first;
  for (std::size_t i = 0; i < std::min(begin.holds.size(), begin.writes.size()); ++i)
    if (begin.holds[i].kind == holding_kind::input) {
      const std::size_t byte = begin.writes[i].begin;
      const auto [known, is_new] = first.try_emplace(begin.holds[i].name, byte);
      if (!is_new) known->second = std::min(known->second, byte);
    }
  std::uint64_t all = 0;
  for (const auto& [name, place] : first) all += runtime::hash_of_input(name, place);
  return all;
}

}  // namespace

hashed_places hashed_places_of(const rank_program& p, const kernel_set& calls, std::uint64_t rows) {
  return {.arena_bytes = p.arena_bytes,
          .tokens = place_of(p, holding_kind::ids),
          .targets = place_of(p, holding_kind::targets),
          .starts = place_of(p, holding_kind::starts),
          .loss = place_of(p, holding_kind::loss),
          .norm = place_of(p, holding_kind::norm),
          .kept = hash_of_kept(p.ops.front()),
          .inputs = hash_of_inputs(p.ops.front()),
          .rows = rows,
          .on_host = calls.on_host,
          .deterministic = calls.deterministic};
}

}  // namespace rankc::codegen
