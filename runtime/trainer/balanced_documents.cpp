// SPDX-License-Identifier: Apache-2.0
#include "balanced_documents.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace rankc::runtime {
namespace {

struct rank_load {
  std::uint64_t cost = 0;              // summed over the microbatches so far
  std::vector<std::size_t> sequences;  // sequences of the current microbatch
};

/// The cheapest rank that has room for another sequence.
rank_load& next_rank(std::vector<rank_load>& ranks, std::size_t rows) {
  rank_load* best = nullptr;
  for (rank_load& r : ranks)
    if (r.sequences.size() < rows && (best == nullptr || r.cost < best->cost)) best = &r;
  return *best;
}

/// Puts sequence order[i] of `all` at place i.
template <class T>
void reorder(std::vector<T>& all, const std::vector<std::size_t>& order) {
  const std::size_t each = all.size() / order.size();
  std::vector<T> ordered;
  ordered.reserve(all.size());
  for (const std::size_t from : order) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(from * each);
    ordered.insert(ordered.end(), begin, begin + static_cast<std::ptrdiff_t>(each));
  }
  all = std::move(ordered);
}

}  // namespace

std::uint64_t document_cost(const std::int32_t* starts, int seq) {
  std::uint64_t cost = 0;
  for (int end = seq; end > 0; end = starts[end - 1]) {
    const auto length = static_cast<std::uint64_t>(end - starts[end - 1]);
    cost += length * length;
  }
  return cost;
}

std::vector<std::size_t> balanced_order(const std::vector<std::uint64_t>& costs, int microbatches, int dp,
                                        int rows) {
  const auto each = static_cast<std::size_t>(rows), of_microbatch = each * static_cast<std::size_t>(dp);
  std::vector<std::size_t> by_cost(costs.size()), order;
  std::iota(by_cost.begin(), by_cost.end(), std::size_t{0});
  std::stable_sort(by_cost.begin(), by_cost.end(),
                   [&](std::size_t a, std::size_t b) { return costs[a] > costs[b]; });
  std::vector<rank_load> ranks(static_cast<std::size_t>(dp));
  for (std::size_t first = 0; first < static_cast<std::size_t>(microbatches) * of_microbatch;
       first += of_microbatch) {
    for (std::size_t i = first; i < first + of_microbatch; ++i) {
      rank_load& to = next_rank(ranks, each);
      to.cost += costs[by_cost[i]];
      to.sequences.push_back(by_cost[i]);
    }
    for (rank_load& r : ranks) {
      order.insert(order.end(), r.sequences.begin(), r.sequences.end());
      r.sequences.clear();
    }
  }
  return order;
}

void balance_documents(const description& about, batch& b) {
  if (b.document_starts.empty() || about.dp == 1) return;
  const auto seq = static_cast<std::size_t>(about.seq);
  std::vector<std::uint64_t> costs;
  for (std::size_t first = 0; first < b.document_starts.size(); first += seq)
    costs.push_back(document_cost(b.document_starts.data() + first, about.seq));
  const std::vector<std::size_t> order = balanced_order(costs, about.microbatches, about.dp, about.rows);
  reorder(b.tokens, order);
  reorder(b.targets, order);
  reorder(b.document_starts, order);
  for (std::vector<double>& input : b.inputs) reorder(input, order);
}

}  // namespace rankc::runtime
