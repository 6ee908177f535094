// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <rankc/rankc.hpp>

namespace equivalence_tests {

/// A Qwen3-MoE with 16 features and top-2 routing; a test sets the fields that matter to it.
constexpr rankc::models::qwen3_moe small_experts(int layers, int experts) {
  return {.layers = layers,
          .hidden = 16,
          .heads = 2,
          .kv_heads = 2,
          .head_dim = 8,
          .experts = experts,
          .top_k = 2,
          .expert_ffn = 8,
          .vocab = 32};
}

}  // namespace equivalence_tests
