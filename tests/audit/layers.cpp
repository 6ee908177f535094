// SPDX-License-Identifier: Apache-2.0
#include "layers.hpp"

#include <rankc/stages/kinds_of_stages.hpp>

namespace audit {

namespace {

std::vector<tensor> tensors_of(const drawn& d, layer_role role) {
  const sizes& s = d.model;
  const std::int64_t t = d.plan.dims.tp, h = s.hidden, ffn = s.ffn / t,
                     keys = s.hidden / s.heads * s.kv_heads / t;
  const tensor vector{.rows = h},
      table{.rows = s.vocab / t, .cols = h, .is_split = t > 1, .is_shared = s.is_tied};
  const auto split = [&](std::int64_t rows, std::int64_t cols = 1) {
    return tensor{.rows = rows, .cols = cols, .is_split = t > 1};
  };
  const bool is_rotary = s.is_llama || s.experts > 0;
  if (role == layer_role::embedding)
    return is_rotary ? std::vector{table} : std::vector{table, tensor{.rows = d.plan.recipe.seq, .cols = h}};
  if (role == layer_role::head)
    return is_rotary ? std::vector{vector, table} : std::vector{vector, vector, table};
  if (s.experts) {
    const tensor of_head{.rows = s.hidden / s.heads, .of_heads = t > 1};
    const std::int64_t ep = d.plan.dims.ep, etp = d.plan.dims.etp;
    const tensor expert{.rows = s.experts / ep * h,
                        .cols = ep > 1 ? s.ffn / etp : ffn,
                        .is_split = ep == 1 && t > 1,
                        .is_spread = ep > 1};
    return {vector,         vector,         split(h / t, h),
            split(keys, h), split(keys, h), split(h, h / t),
            of_head,        of_head,        tensor{.rows = s.experts, .cols = h},
            expert,         expert,         expert};
  }
  std::vector<tensor> all{vector,         vector,          split(h / t, h), split(keys, h),
                          split(keys, h), split(h, h / t), split(ffn, h),   split(h, ffn)};
  if (s.is_llama) all.push_back(split(ffn, h));
  else
    all.insert(all.end(),
               {vector, vector, vector, vector, split(h / t), split(keys), split(keys), split(ffn)});
  return all;
}

layer_role role_of(int kind) {
  if (kind == 0) return layer_role::embedding;
  return kind == 1 ? layer_role::block : layer_role::head;
}

}  // namespace

std::vector<layer> layers_of(const drawn& d, int pp) {
  const rankc::action_table& t = d.plan.actions;
  const std::vector<std::vector<int>> kinds = rankc::kinds_of_stages(d.plan);
  std::vector<layer> all;
  int number = 0;  // index of the next block
  for (int stage = 0; stage < t.stages(); ++stage)
    for (const int kind : kinds[static_cast<std::size_t>(stage)]) {
      const layer_role role = role_of(kind);
      const bool recomputes = role == layer_role::block && d.plan.recipe.recompute.is_of(number++);
      if (t.has_stage(pp, stage))
        all.push_back({role, stage, recomputes, t.rank_of_stage[static_cast<std::size_t>(stage)] != pp,
                       tensors_of(d, role)});
    }
  return all;
}

}  // namespace audit
