// SPDX-License-Identifier: Apache-2.0
// The pipeline ranks that a rank sends to and receives from.
#pragma once
#include <rankc/schedule/actions.hpp>

#include <vector>

namespace rankc::detail {

constexpr void add_once(std::vector<int>& list, int n) {
  for (int known : list)
    if (known == n) return;
  list.push_back(n);
}

/// The ranks that a rank sends to, or with `sends` false receives from, in ascending order.
constexpr std::vector<int> find_neighbours(const action_table& t, int rank, bool sends) {
  std::vector<int> found;
  for (const std::vector<int>* rank_of : {&t.rank_of_stage, &t.reversed_rank_of_stage})
    for (std::size_t s = 0; s < rank_of->size(); ++s) {
      if ((*rank_of)[s] != rank) continue;
      if (s + 1 < rank_of->size() && (sends || !t.inference)) add_once(found, (*rank_of)[s + 1]);
      if (s > 0 && (!sends || !t.inference)) add_once(found, (*rank_of)[s - 1]);
    }
  std::vector<int> others;
  for (int r = 0; r < t.ranks(); ++r)
    for (int n : found)
      if (n == r && n != rank) others.push_back(r);
  return others;
}

}  // namespace rankc::detail
