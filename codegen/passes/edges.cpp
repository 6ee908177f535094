// SPDX-License-Identifier: Apache-2.0
#include "edges.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace rankc::codegen {

namespace {

using runtime::stream;

/// Whether `to` is the rank after `from`. Two ranks are each other's neighbour on one side only.
bool is_next(int from, int to, int ranks) { return to == from + 1 || (ranks > 2 && to == 0 && from == ranks - 1); }

/// Give the edges of one rank that go out, or those that come in, different streams.
void assign(std::vector<pipeline_edge>& edges, int rank, int ranks, bool out) {
  stream next = out ? stream::to_next : stream::from_next, previous = out ? stream::to_prev : stream::from_prev;
  std::vector<pipeline_edge*> mine;
  std::vector<int> others;
  for (pipeline_edge& e : edges)
    if ((out ? e.from : e.to) == rank) {
      mine.push_back(&e);
      others.push_back(out ? e.to : e.from);
    }
  if (mine.size() > 2) throw std::logic_error(fmt::format("pipeline rank {} has more than two neighbours, which RC330 refuses", rank));
  const auto use = [&](std::size_t i, stream s) { (out ? mine[i]->out : mine[i]->in) = s; };
  if (mine.size() == 1) return use(0, is_next(rank, others[0], ranks) ? next : previous);
  if (mine.empty()) return;
  const bool in_order = is_next(rank, others[0], ranks) || is_next(others[1], rank, ranks);
  use(0, in_order ? next : previous);
  use(1, in_order ? previous : next);
}

}  // namespace

std::vector<pipeline_edge> edges_of(const action_table& t) {
  std::vector<pipeline_edge> edges;
  const auto carry = [&](int from, int to, const std::string& what) {
    if (from == to) return;
    const auto known = std::find_if(edges.begin(), edges.end(), [&](const auto& e) { return e.from == from && e.to == to; });
    if (known == edges.end()) edges.push_back({from, to, what, {}, {}});
    else if (known->carries.find(what) == std::string::npos) known->carries += " and " + what;
  };
  for (const std::vector<int>* rank_of : {&t.rank_of_stage, &t.reversed_rank_of_stage})
    for (std::size_t s = 0; s + 1 < rank_of->size(); ++s) {
      carry((*rank_of)[s], (*rank_of)[s + 1], "activations");
      if (!t.inference) carry((*rank_of)[s + 1], (*rank_of)[s], "gradients");
    }
  for (int r = 0; r < t.ranks(); ++r)
    for (bool out : {true, false}) assign(edges, r, t.ranks(), out);
  return edges;
}

const pipeline_edge& find_edge(const std::vector<pipeline_edge>& edges, int from, int to) {
  return *std::find_if(edges.begin(), edges.end(), [&](const pipeline_edge& e) { return e.from == from && e.to == to; });
}

}  // namespace rankc::codegen
