// SPDX-License-Identifier: Apache-2.0
// The refusal that the README shows: what the plan says at compile time is the text beside this file.
#include <01_gpt_one_rank.hpp>

using namespace rankc;
using eight_for_four = plan<plans::byte_gpt, parallel_dims{.world = 8, .tp = 8}, schedules::gpipe{.microbatches = 1}, plans::byte_recipe, clusters::cpu>;
static_assert(!valid<eight_for_four>);
static_assert(std::string_view(detail::why<eight_for_four>.text) == "RC202: heads=4 does not divide by tp=8: take tp=2 or tp=4 (with dp_replicate=infer), or heads=8 or heads=16");
