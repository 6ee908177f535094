// SPDX-License-Identifier: Apache-2.0
// Random plans for which the formulas hold: GPT-2, Llama and Qwen3-MoE of random sizes, dims, schedules and
// options.
#pragma once
#include "fuzz/schedules.hpp"

#include <rankc/stages/plan_data.hpp>

#include <cstdint>

namespace audit {

/// The sizes of a model, named as in the formulas.
struct sizes {
  bool is_llama = false, is_tied = false;
  int experts = 0, picks = 0;  // per block of a Qwen3-MoE
  int blocks = 0, hidden = 0, heads = 0, kv_heads = 0, ffn = 0, vocab = 0;
};

struct drawn {
  audit::sizes model;
  rankc::plan_data plan;  // its diagnostics may refuse it
};

/// Draw the plan of a seed and an index. Its name is `name` and the index.
drawn draw(std::uint64_t seed, std::uint64_t index, const std::string& name);

/// Draw the first `count` plans of a seed that no rule refuses.
std::vector<drawn> draw_legal(std::uint64_t seed, int count, const std::string& name);

}  // namespace audit
