// SPDX-License-Identifier: Apache-2.0
// The account of a rank's communication in a step, by phase, kind, axis and type. The three accounts are
// compared in this form.
#pragma once
#include "fraction.hpp"

#include <rankc/codegen/lowered.hpp>
#include <rankc/runtime/host/transfers.hpp>

#include <span>

namespace audit {

struct key {
  std::string phase, kind, axis, type;  // e.g. "forward", "all_gather", "dp_shard", "f64"
  auto operator<=>(const key&) const = default;
};

struct entry {
  std::int64_t count = 0;  // tensors in one call count once
  std::int64_t tensors = 0;
  std::int64_t elements = 0;
  fraction sent = 0;  // bytes in a ring
  bool operator==(const entry&) const = default;
};

using account = std::map<key, entry>;

/// The account in `describe --json` for a pipeline coordinate.
account described(const std::string& json, int pp);

/// The account of the transfers that the fabric carried for one rank in one step.
account carried(const rankc::runtime::description&, int rank, std::span<const rankc::host::transfer>);

/// The account as the fabric can report it, for programs in f64. The fabric does not see which tensors share
/// a call, so counts are numbers of tensors. Weights may be gathered an action ahead, so gathers of both
/// phases count as forward's. Exchanges of slots and of their offsets are all_to_alls.
account as_carried(const account&);

/// A sentence about the first difference; empty if the accounts are equal.
std::string difference(const account& a, const account& b);

}  // namespace audit
