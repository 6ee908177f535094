// SPDX-License-Identifier: Apache-2.0
// A search of 1,024 GPUs while compiling, of the strategy SEARCH if there is one: how long it takes is timed.
#include <published_model/search.hpp>

#ifdef SEARCH
using namespace rankc::published_model;
static_assert(fastest({{gpt3_1T, b200.with_domain(8)}, strategy::SEARCH, 1024, 4096}).plan.pp == 128);
#endif
