// SPDX-License-Identifier: Apache-2.0
// The number of a model's repeated layers in each stage: as listed, or balanced over the ranks.
#pragma once
#include <rankc/stages/layer_cost.hpp>
#include <rankc/schedule/actions.hpp>

#include <span>
#include <vector>

namespace rankc {

/// An entry of a model's stack.
struct costed_entry {
  layer_cost each;
  int count = 1;
  bool repeated = false;
};

namespace detail {

/// The layers to split: the repeated layers, each with the single layers after it, and the layers before the
/// first and after the last of them.
/// Units: as layer_cost.
struct costed_layers {
  std::vector<long long> blocks = {};
  long long before = 0, after = 0;
  bool has_before = false, has_after = false;

  constexpr costed_layers(std::span<const costed_entry> stack, bool inference) {
    for (const costed_entry& e : stack) {
      const long long cost = e.each.in(inference);
      if (e.repeated) {
        if (has_after) blocks.back() += after;
        after = has_after = 0;
        for (int i = 0; i < e.count; ++i) blocks.push_back(cost);
      } else if (blocks.empty()) {
        before += cost;
        has_before = true;
      } else {
        after += cost;
        has_after = true;
      }
    }
  }
  constexpr int count() const { return static_cast<int>(blocks.size()); }
  constexpr bool are_alike() const {
    for (long long cost : blocks)
      if (cost != blocks[0]) return false;
    return true;
  }
  /// `least` is the smallest number of repeated layers of a stage. `beside` is the cost of its other layers.
  constexpr int least(int stage, int stages) const {
    return !(stage == 0 && has_before) && !(stage + 1 == stages && has_after);
  }
  constexpr long long beside(int stage, int stages) const {
    return (stage == 0 ? before : 0) + (stage + 1 == stages ? after : 0);
  }
};

/// The rank of each stage. For a stage on two ranks it is the first of them, because such pairs share all
/// their stages.
constexpr std::vector<int> ranks_of_stages(const action_table& t) {
  std::vector<int> ranks = t.rank_of_stage;
  for (std::size_t s = 0; s < t.reversed_rank_of_stage.size(); ++s)
    if (t.reversed_rank_of_stage[s] < ranks[s]) ranks[s] = t.reversed_rank_of_stage[s];
  return ranks;
}

/// Splits layers of equal cost. First, layers are given one by one to the rank with the least work, which
/// determines the largest work of a rank. Within that limit each layer goes to the stage with the least work,
/// the first one on a tie. Both steps are exact, because the sets of layers that fit are polymatroids.
/// Shapes: rank_of, and the result (stages).
constexpr std::vector<int> hand_out(const costed_layers& layers, const std::vector<int>& rank_of) {
  const int stages = static_cast<int>(rank_of.size());
  const long long each = layers.blocks.empty() ? 0 : layers.blocks.front();
  std::vector<int> blocks;
  std::vector<long long> of_stage, of_rank(rank_of.size(), 0);
  int left = layers.count();
  for (int s = 0; s < stages; ++s) {
    blocks.push_back(layers.least(s, stages));
    of_stage.push_back(blocks[s] * each + layers.beside(s, stages));
    of_rank[rank_of[s]] += of_stage[s];
    left -= blocks[s];
  }
  std::vector<long long> filled = of_rank;
  for (int i = 0; i < left; ++i) {
    int to = rank_of[0];
    for (int rank : rank_of)
      if (filled[rank] < filled[to]) to = rank;
    filled[to] += each;
  }
  long long most = 0;
  for (long long sum : filled)
    if (sum > most) most = sum;
  for (; left > 0; --left) {
    int to = -1;
    for (int s = 0; s < stages; ++s)
      if (of_rank[rank_of[s]] + each <= most && (to < 0 || of_stage[s] < of_stage[to])) to = s;
    ++blocks[to];
    of_stage[to] += each;
    of_rank[rank_of[to]] += each;
  }
  return blocks;
}

/// Splits layers of several kinds so that the largest stage is as small as possible. Ties are broken by the
/// least sum of squares, then by the later cut.
/// Shapes: the result (stages).
constexpr std::vector<int> cut(const costed_layers& layers, int stages) {
  const int n = layers.count();
  std::vector<long long> until{0};  // cost of the first layers, by their number
  for (long long cost : layers.blocks) until.push_back(until.back() + cost);
  const long long total = until.back() + layers.before + layers.after;
  // The best cut of the first `end` layers into the first stages.
  struct best_cut {
    long long largest = -1, squares = 0;
    int begin = 0;  // first layer of the last of these stages
  };
  const auto row = static_cast<std::size_t>(n) + 1;
  std::vector<best_cut> best(row * static_cast<std::size_t>(stages));
  const best_cut none{0, 0, 0};
  int needed = 0, needed_behind = 0;  // layers needed by the stages so far, and by the later ones
  for (int s = 0; s < stages; ++s) needed_behind += layers.least(s, stages);
  for (int s = 0; s < stages; ++s) {
    needed += layers.least(s, stages);
    needed_behind -= layers.least(s, stages);
    for (int end = needed; end <= n - needed_behind; ++end) {
      best_cut& found = best[s * row + end];
      for (int begin = s == 0 ? 0 : end - layers.least(s, stages); begin >= 0; --begin) {
        const long long cost = until[end] - until[begin] + layers.beside(s, stages),
                        share = cost * 65536 / total;
        if (found.largest >= 0 && cost > found.largest) break;
        const best_cut& before = s == 0 ? none : best[(s - 1) * row + begin];
        if (before.largest < 0) continue;
        const best_cut all{before.largest > cost ? before.largest : cost, before.squares + share * share,
                           begin};
        if (found.largest < 0 || all.largest < found.largest ||
            (all.largest == found.largest && all.squares < found.squares))
          found = all;
      }
    }
  }
  std::vector<int> blocks(static_cast<std::size_t>(stages), 0);
  for (int s = stages - 1, end = n; s >= 0; --s) {
    blocks[s] = end - best[s * row + end].begin;
    end -= blocks[s];
  }
  return blocks;
}

}  // namespace detail

/// The number of repeated layers in each stage. Listed numbers are kept. For layers of equal cost, the
/// largest work of a rank is minimal, and then that of each stage. For layers of different cost, the largest
/// stage is minimal. The first stage may have none if it has single layers before them, and the last stage if
/// it has single layers after them.
/// Shapes: `listed` and the result (stages). The plan must break neither RC201 nor RC217.
constexpr std::vector<int> split_layers(std::span<const costed_entry> stack, const action_table& placed,
                                        std::span<const int> listed) {
  if (!listed.empty()) return {listed.begin(), listed.end()};
  const detail::costed_layers layers(stack, placed.inference);
  if (layers.are_alike()) return detail::hand_out(layers, detail::ranks_of_stages(placed));
  return detail::cut(layers, placed.stages());
}

}  // namespace rankc
