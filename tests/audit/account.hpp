// SPDX-License-Identifier: Apache-2.0
// What a rank communicates in a step, by phase, kind, axis and type: the form in which three accounts of it
// are compared.
#pragma once
#include "fraction.hpp"

#include <rankc/codegen/lowered.hpp>
#include <rankc/runtime/host/transfers.hpp>

#include <span>

namespace audit {

struct key {
  std::string phase, kind, axis, type;  // "forward", "all_gather", "dp_shard", "f64"
  auto operator<=>(const key&) const = default;
};

struct entry {
  std::int64_t count = 0;  // tensors that go together count once
  std::int64_t tensors = 0;
  std::int64_t elements = 0;
  fraction sent = 0;  // bytes, in a ring
  bool operator==(const entry&) const = default;
};

using account = std::map<key, entry>;

/// What `describe --json` says of a pipeline coordinate.
account described(const std::string& json, int pp);

/// What the fabric carried for a rank in a step.
account carried(const rankc::runtime::description&, int rank, std::span<const rankc::host::transfer>);

/// An account as the fabric can give it, which knows neither what goes together nor which phase weights are
/// gathered for, maybe an action ahead: counts are those of tensors, and gathers of either phase are counted
/// together, as forward's. Exchanges of slots and of their offsets are all_to_alls. Of f64.
account as_carried(const account&);

/// The first difference as a sentence; empty: they are equal.
std::string difference(const account& a, const account& b);

}  // namespace audit
