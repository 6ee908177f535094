// SPDX-License-Identifier: Apache-2.0
// Plans whose ranks pass keys and values around rings.
#pragma once
#include <rankc/plan/make_plan.hpp>
#include <rankc/rankc.hpp>

namespace equivalence_tests {

/// A plan with `rows` sequences on each replica, in one microbatch.
inline rankc::plan_data ring_plan(const auto& model, rankc::parallel_dims dims, int rows, int seq,
                                  const rankc::recomputation& again = {}) {
  using namespace rankc;
  dims.cp_attention = cp_attention::ring;
  return make_plan("rings", model, dims, schedules::gpipe{1},
                   training{.seq = seq,
                            .global_batch = rows * dims.dp_replicate * dims.dp_shard,
                            .precision = f32,
                            .recompute = again},
                   clusters::h200<256>);
}

}  // namespace equivalence_tests
