// SPDX-License-Identifier: Apache-2.0
#include "gathers.hpp"

#include <algorithm>
#include <numeric>

namespace audit {

namespace {

using rankc::action;
using rankc::action_kind;

/// The actions that read weights, in order. An embedding's backward and the second half of a split backward
/// read none.
std::vector<gather> reads_of(const rankc::action_table& t, int pp, const std::vector<layer>& layers) {
  std::vector<gather> all;
  for (int at = t.begin[static_cast<std::size_t>(pp)]; at < t.begin[static_cast<std::size_t>(pp) + 1]; ++at) {
    const action& a = t.actions[static_cast<std::size_t>(at)];
    const bool forward = a.kind == action_kind::F;
    for (std::size_t n = 0; n < layers.size() && computes(a.kind) && a.kind != action_kind::W; ++n) {
      const std::size_t i = forward ? n : layers.size() - 1 - n;
      if (layers[i].stage == a.stage && (forward || layers[i].role != layer_role::embedding))
        all.push_back({i, forward ? "forward" : "backward"});
    }
  }
  return all;
}

struct memory {
  std::int64_t first = -1, last = -1;
  bool meets(const memory& other) const { return first < other.last && other.first < last; }
};

/// The memory range of each layer's gathered weights.
std::vector<memory> place(const std::vector<layer>& layers, int shards, int expert_shards,
                          std::size_t ahead) {
  std::vector<memory> all(layers.size());
  std::vector<std::int64_t> size(layers.size(), 0);
  for (std::size_t l = 0; l < layers.size(); ++l)
    for (const tensor& w : layers[l].tensors) {
      const int of = w.is_spread ? expert_shards : shards;
      if (of > 1) size[l] += room(w.shard_rows(of) * of * w.cols);
    }
  std::vector<std::size_t> largest_first(layers.size());
  std::iota(largest_first.begin(), largest_first.end(), std::size_t{0});
  std::stable_sort(largest_first.begin(), largest_first.end(),
                   [&](std::size_t a, std::size_t b) { return size[a] > size[b]; });
  for (const std::size_t l : largest_first) {
    memory& here = all[l];
    here = {0, size[l]};
    const auto in_the_way = [&](std::size_t other) {
      return other != l && all[other].first >= 0 && std::max(l, other) - std::min(l, other) <= ahead &&
             here.meets(all[other]);
    };
    for (std::size_t other = 0; other < layers.size();)
      if (in_the_way(other)) {
        here = {all[other].last, all[other].last + size[l]};
        other = 0;
      } else ++other;
  }
  return all;
}

}  // namespace

std::vector<gather> gathers_of(const drawn& d, int pp, const std::vector<layer>& layers) {
  const auto ahead = static_cast<std::size_t>(d.plan.dims.prefetch);
  const std::vector<memory> at =
      place(layers, weight_shards(d.plan.dims), expert_weight_shards(d.plan.dims), ahead);
  std::vector<gather> reads = reads_of(d.plan.actions, pp, layers);
  std::erase_if(reads, [&](const gather& r) {
    return at[r.layer].first == at[r.layer].last;
  });  // weights that are not sharded
  std::vector<gather> all;
  std::vector<bool> is_there(layers.size(), false);
  for (std::size_t i = 0; i < reads.size(); ++i)
    for (std::size_t next = i; next < reads.size() && next <= i + ahead; ++next) {
      const std::size_t l = reads[next].layer;
      const auto is_read_there = [&](const gather& r) { return r.layer != l && at[r.layer].meets(at[l]); };
      if (std::any_of(reads.begin() + static_cast<std::ptrdiff_t>(i),
                      reads.begin() + static_cast<std::ptrdiff_t>(next), is_read_there))
        break;
      if (is_there[l]) continue;
      for (std::size_t other = 0; other < layers.size(); ++other)
        if (at[other].meets(at[l])) is_there[other] = false;
      is_there[l] = true;
      all.push_back(reads[next]);
    }
  return all;
}

}  // namespace audit
