// SPDX-License-Identifier: Apache-2.0
// Groups of ranks as a partition: for each rank, the lowest rank of its group. Equal partitions compare
// equal, independent of their source.
#pragma once
#include <rankc/mesh/group.hpp>

#include <algorithm>
#include <map>

namespace rankc::test {

using partition = std::vector<int>;

/// Ranks with an equal label are a group.
template <class Labels>
partition of_labels(const Labels& labels) {
  std::map<typename Labels::value_type, int> first;
  partition out;
  for (const auto& label : labels)
    out.push_back(first.try_emplace(label, static_cast<int>(out.size())).first->second);
  return out;
}

inline partition of_shape(const group_shape& g, int ranks) {
  partition out;
  for (int r = 0; r < ranks; ++r) out.push_back(g.first(r));
  return out;
}

/// The finest groups that contain the groups of both.
inline partition join(const partition& a, const partition& b) {
  partition parent = a;
  const auto root = [&](int r) {
    while (parent[static_cast<std::size_t>(r)] != r) r = parent[static_cast<std::size_t>(r)];
    return r;
  };
  for (std::size_t r = 0; r < b.size(); ++r) {
    const auto [low, high] = std::minmax({root(static_cast<int>(r)), root(b[r])});
    parent[static_cast<std::size_t>(high)] = low;
  }
  for (std::size_t r = 0; r < b.size(); ++r) parent[r] = root(static_cast<int>(r));
  return parent;
}

}  // namespace rankc::test
