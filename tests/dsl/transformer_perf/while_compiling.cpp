// SPDX-License-Identifier: Apache-2.0
// A search of 1,024 GPUs while compiling, of the strategy SEARCH if there is one: how long it takes is timed.
#include <rankc/cost_model/transformer_perf/search.hpp>

#ifdef SEARCH
using namespace rankc::cost_model::transformer_perf;
static_assert(fastest({{gpt3_1T, b200.with_domain(8)}, strategy::SEARCH, 1024, 4096}).plan.pp == 128);
#endif
