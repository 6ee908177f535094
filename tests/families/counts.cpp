// SPDX-License-Identifier: Apache-2.0
#include "counts.hpp"

const int jobs_of_family = RANKC_FAMILIES;
const int plans_of_family = RANKC_PLANS;
