// SPDX-License-Identifier: Apache-2.0
// Plans of GPT-2s, Llamas and Qwen3-MoEs of drawn sizes, dims, schedules and choices: what the formulas are
// about.
#pragma once
#include "fuzz/schedules.hpp"

#include <rankc/stages/plan_data.hpp>

#include <cstdint>

namespace audit {

/// Sizes of a model, as formulas call them.
struct sizes {
  bool is_llama = false, is_tied = false;
  int experts = 0, picks = 0;  // of each block of a Qwen3-MoE
  int blocks = 0, hidden = 0, heads = 0, kv_heads = 0, ffn = 0, vocab = 0;
};

struct drawn {
  audit::sizes model;
  rankc::plan_data plan;  // whose diagnostics may refuse it
};

/// `name` in front of the plan's index.
drawn draw(std::uint64_t seed, std::uint64_t index, const std::string& name);

/// The first so many of a seed that no rule refuses.
std::vector<drawn> draw_legal(std::uint64_t seed, int count, const std::string& name);

}  // namespace audit
