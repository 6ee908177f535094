// SPDX-License-Identifier: Apache-2.0
#include "edges.hpp"

#include <algorithm>

namespace rankc::codegen {

std::vector<pipeline_edge> edges_of(const action_table& t) {
  std::vector<pipeline_edge> edges;
  const auto carry = [&](int from, int to, const std::string& what) {
    if (from == to) return;
    const auto known =
        std::find_if(edges.begin(), edges.end(), [&](const auto& e) { return e.from == from && e.to == to; });
    if (known == edges.end()) edges.push_back({from, to, what});
    else if (known->carries.find(what) == std::string::npos) known->carries += " and " + what;
  };
  for (const std::vector<int>* rank_of : {&t.rank_of_stage, &t.reversed_rank_of_stage})
    for (std::size_t s = 0; s + 1 < rank_of->size(); ++s) {
      carry((*rank_of)[s], (*rank_of)[s + 1], "activations");
      if (!t.inference) carry((*rank_of)[s + 1], (*rank_of)[s], "gradients");
    }
  return edges;
}

}  // namespace rankc::codegen
