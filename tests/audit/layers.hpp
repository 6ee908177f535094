// SPDX-License-Identifier: Apache-2.0
// The layers of a pipeline rank of a GPT-2, a Llama or a Qwen3-MoE and their weights, written down from the
// models' definitions.
#pragma once
#include "drawn.hpp"

namespace audit {

/// A weight as a rank of tp reads it.
struct tensor {
  std::int64_t rows = 1, cols = 1;
  bool is_split = false;   // over tp
  bool of_heads = false;   // whole on each rank of tp, and read for the heads of each alone
  bool is_spread = false;  // over ep
  bool is_shared = false;  // the table of both ends
  std::int64_t shard_rows(int shards) const { return (rows + shards - 1) / shards; }
};

enum class layer_role { embedding, block, head };

struct layer {
  layer_role role = layer_role::block;
  int stage = 0;
  bool recomputes = false;  // its backward repeats what the recipe says
  bool is_copy = false;     // its stage's second holder has it
  std::vector<tensor> tensors{};
};

/// In the order of the rank's stages.
std::vector<layer> layers_of(const drawn&, int pp);

}  // namespace audit
