// SPDX-License-Identifier: Apache-2.0
// Plans in several namespaces. In comments and texts there are none: plan commented{}.
#pragma once
#include "included.hpp"

/* plan commented{}; namespace { */
inline constexpr const char* text = "plan written{} // }";
inline constexpr rankc::plan outermost = my::made_of(my::model);

namespace my {

inline constexpr plan gpt{.model = model,
                          .schedule = schedules::gpipe{.microbatches = 1},
                          .recipe = training{.seq = 16, .global_batch = 4},
                          .cluster = clusters::cpu};
inline constexpr auto made = made_of(model);

namespace small::tiny {
inline constexpr plan gpt = my::gpt;
}

}  // namespace my
