// SPDX-License-Identifier: Apache-2.0
// The all-reduces of the gradient norm, and the wrong communicators that they could use.
#pragma once
#include <rankc/codegen/program.hpp>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace norm_sums {

using namespace rankc::codegen;

/// The communicator of a kind, such as "dp", that contains a rank; -1: none.
inline int communicator_of(const program& p, int rank, const std::string& kind) {
  for (std::size_t c = 0; c < p.communicators.size(); ++c) {
    const std::vector<int>& ranks = p.communicators[c].ranks;
    if (p.communicators[c].name.starts_with(kind + " ") && std::count(ranks.begin(), ranks.end(), rank) > 0)
      return static_cast<int>(c);
  }
  return -1;
}

/// The kinds of communicators that all ranks are in.
inline std::set<std::string> kinds_of_communicators(const program& p) {
  std::set<std::string> kinds;
  for (const communicator& c : p.communicators) kinds.insert(c.name.substr(0, c.name.find(' ')));
  for (int r = 0; r < static_cast<int>(p.ranks.size()); ++r)
    std::erase_if(kinds, [&](const std::string& kind) { return communicator_of(p, r, kind) < 0; });
  return kinds;
}

inline std::set<std::string> sums_of_norm(const program& p) {
  std::set<std::string> names;
  for (const op& o : p.ranks[0].ops)
    if (o.kind == op_kind::collective && o.name.starts_with("gradient norm")) names.insert(o.name);
  return names;
}

/// True if a sum already runs over the ranks of a kind.
inline bool same_members(const program& p, const std::string& kind, const std::string& sum) {
  for (const op& o : p.ranks[0].ops)
    if (o.name == sum) {
      const auto members = [&](int c) {
        const std::vector<int>& ranks = p.communicators[static_cast<std::size_t>(c)].ranks;
        return std::set<int>(ranks.begin(), ranks.end());
      };
      return members(o.communicator) == members(communicator_of(p, 0, kind));
    }
  return false;
}

/// Moves the norm's sum to the communicator of another kind, on all ranks.
inline void move_sum(program& p, const std::string& sum, const std::string& kind) {
  for (int r = 0; r < static_cast<int>(p.ranks.size()); ++r)
    for (op& o : p.ranks[static_cast<std::size_t>(r)].ops)
      if (o.name == sum) o.communicator = communicator_of(p, r, kind);
}

}  // namespace norm_sums
