// SPDX-License-Identifier: Apache-2.0
// A search for 1,024 GPUs at compile time, with the strategy SEARCH if it is defined. A test measures the
// time.
#include <published_model/search.hpp>

#ifdef SEARCH
using namespace rankc::published_model;
static_assert(fastest({{gpt3_1T, b200.with_domain(8)}, strategy::SEARCH, 1024, 4096}).plan.pp == 128);
#endif
