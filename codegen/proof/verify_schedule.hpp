// SPDX-License-Identifier: Apache-2.0
// The checker's two halves: that the ops meet and follow one another as the certificate's order says, and
// that in this order every byte read is the byte meant.
#pragma once
#include "verify_read.hpp"

#include <fmt/format.h>

#include <compare>
#include <string>
#include <utility>
#include <vector>

namespace rankc::codegen::verifying {

struct id {
  int rank, index;
  auto operator<=>(const id&) const = default;
};

/// Ops by rank and index: who meets whom (itself included; nobody for ops that do not communicate) and what
/// an op's start waits for directly.
struct schedule {
  std::vector<std::vector<std::vector<id>>> partners, causes;  // (ranks, ops)
  std::vector<id> order;  // one op of each joint event, in the certificate's order
};

/// Errors: throws refusal.
schedule check_schedule(const document&);
void check_memory(const document&, const schedule&);

inline const step& at(const document& d, id i) { return d.workers[i.rank].steps[i.index]; }

template <class... T>
[[noreturn]] void refuse(const document& d, id i, fmt::format_string<T...> text, T&&... facts) {
  throw refusal(fmt::format("rank {}: \"{}\" ", i.rank, at(d, i).name) +
                fmt::format(text, std::forward<T>(facts)...));
}

}  // namespace rankc::codegen::verifying
