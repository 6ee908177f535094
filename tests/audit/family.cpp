// SPDX-License-Identifier: Apache-2.0
#include "family.hpp"

namespace audit {

const int plans_of_family = RANKC_PLANS;
const std::string_view audited_layout = RANKC_AUDITED;

}  // namespace audit
