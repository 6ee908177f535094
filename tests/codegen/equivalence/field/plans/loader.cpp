// SPDX-License-Identifier: Apache-2.0
#include "plans.hpp"

#include <rankc/runtime/chunks.hpp>

namespace field {

namespace {

using rankc::codegen::holding_kind;

/// The places of a rank: among the ranks with other sequences, and among those with other tokens of these.
struct place {
  int data, context;
};

/// Source: the order of coordinates that the runtime requires of a program's ranks.
place place_of(const rankc::parallel_dims& d, int rank) {
  const int data = d.dp_replicate * d.dp_shard, of_experts = d.world / (d.pp * data * d.cp * d.tp);
  return {rank / (of_experts * d.cp * d.tp) % data, rank / d.tp % d.cp};
}

/// The tokens of a microbatch of a rank.
std::vector<std::int64_t> tokens_of(const rankc::plan_data& p, int microbatch, place at, bool whole) {
  const int data = p.dims.dp_replicate * p.dims.dp_shard;
  const rankc::runtime::chunks has{p.recipe.seq, whole ? 1 : p.dims.cp, whole ? 0 : at.context};
  std::vector<std::int64_t> all;
  for (int row = 0; row < p.rows; ++row)
    for (int i = 0; i < has.count(); ++i)
      all.push_back(((std::int64_t{microbatch} * data + at.data) * p.rows + row) * p.recipe.seq +
                    has.position(i));
  return all;
}

}  // namespace

execution::loader loader_of(const rankc::plan_data& p) {
  execution::loader all;
  for (int rank = 0; rank < p.dims.world; ++rank) {
    std::vector<execution::loaded_input>& inputs = all.emplace_back();
    const place at = place_of(p.dims, rank);
    for (const holding_kind kind :
         {holding_kind::ids, holding_kind::targets, holding_kind::starts, holding_kind::input}) {
      inputs.push_back({kind, kind == holding_kind::input ? "weights" : "", {}});
      for (int m = 0; m < p.actions.microbatches; ++m)
        inputs.back().microbatches.push_back(tokens_of(p, m, at, kind == holding_kind::starts));
    }
  }
  return all;
}

}  // namespace field
