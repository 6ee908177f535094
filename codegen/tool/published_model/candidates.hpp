// SPDX-License-Identifier: Apache-2.0
// The candidates of a search: every degree of parallelism and every placement in NVLink domains.
#pragma once
#include <rankc/base/divisors.hpp>
#include "step.hpp"

#include <vector>

namespace rankc::published_model {

/// The problem of a search. A plan is feasible if it needs at most `on.gpu.hbm_capacity`.
struct problem {
  setting on;
  strategy by = strategy::tp1d;
  int gpus = 1, global_batch = 1;
};

namespace detail {

/// The number of ranks that shard the tokens of a microbatch.
constexpr int token_shards(const problem& q, int tp1, int tp2) {
  return q.by == strategy::tp2d ? tp2 : tp1 * tp2;
}

/// True if a layer may be sharded so.
constexpr bool splits_layer(const problem& q, int tp1, int tp2) {
  constexpr int narrowest = 128;
  const transformer& m = q.on.model;
  if (m.h % tp1 != 0 || m.e % tp1 != 0) return false;
  if (q.by == strategy::tp1d && 3 * m.e / tp1 < narrowest) return false;
  if (q.by != strategy::tp1d && (m.e / tp1 < narrowest || m.l / tp2 < narrowest)) return false;
  if (q.by == strategy::tp2d && m.e % tp2 != 0) return false;
  return !q.on.fix.whole_shards || m.l % token_shards(q, tp1, tp2) == 0;  // D6
}

/// Numbers of SUMMA panels: the size of the longer axis, doubled while a panel is at least 512 wide.
constexpr std::vector<int> panels(const problem& q, int tp1, int tp2) {
  if (q.by != strategy::tp2d) return {1};
  constexpr int narrowest = 512;
  const int e = q.on.model.e, first = std::max(tp1, tp2);
  if (e / first < narrowest) return {first};
  std::vector<int> all;
  for (int doubled = 1; doubled < e / first; doubled *= 2) {
    const int c = first * doubled;
    if (e % c == 0 && e / c >= narrowest) all.push_back(c);
  }
  return all;
}

/// True if an axis of this plan could have more of its ranks in a domain.
constexpr bool has_room(const plan& p, int domain) {
  const int used = p.nv_tp1 * p.nv_tp2 * p.nv_dp * p.nv_pp;
  for (const group g :
       {group{p.tp1, p.nv_tp1}, group{p.tp2, p.nv_tp2}, group{p.dp, p.nv_dp}, group{p.pp, p.nv_pp}}) {
    for (int more = 2; used * more <= domain; ++more) {
      if (g.size / g.in_domain % more == 0) return true;
    }
  }
  return false;
}

/// Pipelines of equal stages for this tensor split, all within one domain.
constexpr std::vector<plan> pipelines(const problem& q, int tp1, int tp2) {
  const int depth = q.on.model.depth, rest = q.gpus / (tp1 * tp2);
  std::vector<plan> all;
  for (int pp : divisors(std::min(rest, depth))) {
    const int dp = rest / pp;
    if (rest % pp != 0 || depth % pp != 0 || q.global_batch % dp != 0) continue;
    all.push_back(
        {.dp = dp, .tp1 = tp1, .tp2 = tp2, .pp = pp, .nv_tp1 = tp1, .nv_tp2 = tp2, .nv_dp = dp, .nv_pp = pp});
  }
  return all;
}

}  // namespace detail

/// GPUs of a domain that belong to one group of each axis.
struct domain_split {
  int tp1 = 1, tp2 = 1, dp = 1, pp = 1;
};

/// All splits of a domain. Those with the same tp1 and tp2 are neighbours. D9: the Python's splits leave no
/// GPU over.
constexpr std::vector<domain_split> domain_splits(const problem& q) {
  const int gpus = q.on.gpu.nvlink_size;
  const auto fits = [&](int ranks, int room) { return q.on.fix.partial_domains || room % ranks == 0; };
  std::vector<domain_split> all;
  for (int tp1 = 1; tp1 <= gpus; ++tp1) {
    if (!fits(tp1, gpus)) continue;
    for (int tp2 = 1, room = gpus / tp1; tp2 <= (q.by == strategy::tp1d ? 1 : room); ++tp2) {
      if (!fits(tp2, room)) continue;
      for (int dp = 1, rest = room / tp2; dp <= rest; ++dp) {
        if (!fits(dp, rest)) continue;
        for (int pp = q.on.fix.partial_domains ? 1 : rest / dp; pp <= rest / dp; ++pp)
          all.push_back({tp1, tp2, dp, pp});
      }
    }
  }
  return all;
}

/// All plans of a tensor split, without microbatch and panels. Plans with the same nv_tp1 and nv_tp2 are
/// neighbours.
constexpr std::vector<plan> placed_plans(const problem& q, const std::vector<domain_split>& domains, int tp1,
                                         int tp2) {
  const std::vector<plan> pipelines = detail::pipelines(q, tp1, tp2);
  if (q.gpus <= q.on.gpu.nvlink_size) return pipelines;
  std::vector<plan> all;
  for (const domain_split& in_domain : domains) {
    if (tp1 % in_domain.tp1 != 0 || tp2 % in_domain.tp2 != 0) continue;
    for (plan p : pipelines) {
      if (p.dp % in_domain.dp != 0 || p.pp % in_domain.pp != 0) continue;
      p.nv_tp1 = in_domain.tp1;
      p.nv_tp2 = in_domain.tp2;
      p.nv_dp = in_domain.dp;
      p.nv_pp = in_domain.pp;
      if (!q.on.fix.partial_domains || !detail::has_room(p, q.on.gpu.nvlink_size)) all.push_back(p);
    }
  }
  return all;
}

}  // namespace rankc::published_model
