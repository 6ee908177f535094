// SPDX-License-Identifier: Apache-2.0
// The plan of the outside projects: one layer, so that it is built and trained in a moment.
#pragma once
#include <rankc/rankc.hpp>

namespace outside {

inline constexpr auto model =
    rankc::models::gpt2{.layers = 1, .hidden = 32, .heads = 2, .ffn = 64, .vocab = 64};
inline constexpr rankc::training recipe{.seq = 16, .global_batch = 4, .precision = rankc::f32, .lr = 1e-2};

using tiny = rankc::plan<model, rankc::parallel_dims{.world = 2, .pp = 1, .dp_replicate=2}, rankc::schedules::gpipe{.microbatches = 1}, recipe,
                         rankc::clusters::cpu>;
static_assert(rankc::valid<tiny>);

}  // namespace outside
