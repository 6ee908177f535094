// SPDX-License-Identifier: Apache-2.0
// Finds the legal dims by search, to compare with the rules.
#pragma once
#include <rankc/rules/values/dims.hpp>

#include <optional>

namespace rankc::test {

/// Whether no rule refuses the dims.
inline bool accepted(const parallel_dims& d) {
  report out;
  check_dims(out, d);
  return accepts(out);
}

/// The number of degrees that are `infer`.
inline int inferred(const parallel_dims& d) {
  int n = 0;
  for (const auto& a : all_degrees) n += d.*a.degree == infer;
  return n;
}

/// Whether dims without `infer` have a layout.
inline bool legal(const parallel_dims& d) {
  for (const auto& a : all_degrees)
    if (d.*a.degree < 1) return false;
  long long product = 1, region = 1;
  const bool independent = d.expert_layout == expert_layout::independent;
  for (int degree : {d.pp, d.dp_replicate, d.dp_shard, d.cp, d.tp, independent ? d.ep : 1})
    if ((product *= degree) > d.world) return false;
  if (product != d.world) return false;
  // The ranks that hold one copy of the experts: a pipeline stage, without the axes that replicate experts.
  for (int degree : {d.cp, d.tp, independent ? d.ep : d.dp_shard,
                     d.expert_layout == expert_layout::folded_over_replicas ? d.dp_replicate : 1})
    region *= degree;
  return d.cp % d.ulysses == 0 && region % (1LL * d.ep * d.etp) == 0;
}

/// The dims with each `infer` replaced by the largest degree that makes them legal; empty if there is none.
inline std::optional<parallel_dims> filled(parallel_dims d) {
  for (const auto& a : all_degrees)
    if (d.*a.degree == infer) {
      for (int n = d.world; n >= 1; --n) {
        d.*a.degree = n;
        if (const auto whole = filled(d)) return whole;
      }
      return std::nullopt;
    }
  return legal(d) ? std::optional(d) : std::nullopt;
}

/// Call `f` with all legal dims of a world; without context parallelism, under one cp_weights alone.
template <class F>
void for_each_legal(int world, const F& f) {
  const auto divisors = [](int n, const auto& g) {
    for (int i = 1; i <= n; ++i)
      if (n % i == 0) g(i);
  };
  for (expert_layout layout :
       {expert_layout::folded, expert_layout::folded_over_replicas, expert_layout::independent})
    for (cp_weights weights : {cp_weights::shard, cp_weights::replicate}) {
      parallel_dims d{.world = world, .expert_layout = layout, .cp_weights = weights};
      divisors(world, [&](int pp) {
        d.pp = pp;
        divisors(world / pp, [&](int dp_replicate) {
          d.dp_replicate = dp_replicate;
          divisors(world / pp / dp_replicate, [&](int dp_shard) {
            d.dp_shard = dp_shard;
            divisors(world / pp / dp_replicate / dp_shard, [&](int cp) {
              d.cp = cp;
              if (cp == 1 && weights == cp_weights::replicate) return;
              divisors(world, [&](int ep) {
                d.ep = ep;
                d.tp = world / pp / dp_replicate / dp_shard / cp /
                       (layout == expert_layout::independent ? ep : 1);
                for (d.ulysses = 1; d.ulysses <= cp; ++d.ulysses)
                  divisors(world, [&](int etp) {
                    d.etp = etp;
                    if (legal(d)) f(d);
                  });
              });
            });
          });
        });
      });
    }
}

}  // namespace rankc::test
