// SPDX-License-Identifier: Apache-2.0
// The refusal in the README: the compiler's message for this plan is the text in the file next to this one.
#include <01_gpt_one_rank.hpp>

using namespace rankc;
inline constexpr plan eight_for_four{.model = plans::byte_gpt,
                                     .dims = parallel_dims{.world = 8, .tp = 8},
                                     .schedule = schedules::gpipe{.microbatches = 1},
                                     .recipe = plans::byte_recipe,
                                     .cluster = clusters::cpu};
static_assert(!valid<eight_for_four>);
static_assert(std::string_view(detail::why<eight_for_four>.text) ==
              "RC202: heads=4 does not divide by tp=8: take tp=2 or tp=4 (with dp_replicate=infer), or "
              "heads=8 or heads=16");
