// SPDX-License-Identifier: Apache-2.0
// A plan that another header includes.
#pragma once
#include <rankc/rankc.hpp>

namespace my {
using namespace rankc;

constexpr auto made_of(auto model) {
  return plan{.model = model,
              .schedule = schedules::gpipe{.microbatches = 1},
              .recipe = training{.seq = 16, .global_batch = 4},
              .cluster = clusters::cpu};
}
inline constexpr auto model = models::gpt2{.layers = 1, .hidden = 32, .heads = 2, .ffn = 64, .vocab = 64};
inline constexpr plan included = made_of(model);

}  // namespace my
