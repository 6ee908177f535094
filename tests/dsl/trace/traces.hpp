// SPDX-License-Identifier: Apache-2.0
// Traces of both models on two tp and two dp ranks, with and without sequence parallelism.
#pragma once
#include <rankc/plan/make_plan.hpp>
#include <rankc/rankc.hpp>

#include <string>
#include <vector>

namespace rankc::testing {

inline constexpr int layers = 3, hidden = 32, tokens = 64;  // tokens of a microbatch, over all ranks

inline plan_data traced(const auto& model, bool sp) {
  const parallel_dims dims{.world = 4, .dp_replicate = 2, .tp = 2, .sequence_parallel = sp};
  return make_plan("traced", model, dims, schedules::gpipe{.microbatches = 2},
                   training{.seq = 16, .global_batch = 8}, clusters::cpu);
}
inline plan_data gpt2(bool sp) {
  return traced(models::gpt2{.layers = layers, .hidden = hidden, .heads = 4, .ffn = 128, .vocab = 256}, sp);
}
inline plan_data llama(bool sp) {
  return traced(
      models::llama{.layers = layers, .hidden = hidden, .heads = 4, .kv_heads = 2, .ffn = 128, .vocab = 256},
      sp);
}

inline int elements(const type& t) {
  int n = 1;
  for (int i = 0; i < t.ndim; ++i) n *= t.shape[i].size;
  return n;
}

}  // namespace rankc::testing
