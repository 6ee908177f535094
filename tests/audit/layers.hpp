// SPDX-License-Identifier: Apache-2.0
// The layers of a pipeline rank of a GPT-2, a Llama or a Qwen3-MoE, and their weights, from the models'
// definitions.
#pragma once
#include "drawn.hpp"

namespace audit {

/// A weight as a rank of tp reads it.
struct tensor {
  std::int64_t rows = 1, cols = 1;
  bool is_split = false;   // sharded over tp
  bool of_heads = false;   // whole on each tp rank, but read for that rank's heads alone
  bool is_spread = false;  // sharded over ep
  bool is_shared = false;  // the table that embedding and head share
  std::int64_t shard_rows(int shards) const { return (rows + shards - 1) / shards; }
};

enum class layer_role { embedding, block, head };

struct layer {
  layer_role role = layer_role::block;
  int stage = 0;
  bool recomputes = false;  // backward recomputes as the recipe says
  bool is_copy = false;     // this rank is the second holder of the stage
  std::vector<tensor> tensors{};
};

/// The layers of a rank, in the order of its stages.
std::vector<layer> layers_of(const drawn&, int pp);

}  // namespace audit
