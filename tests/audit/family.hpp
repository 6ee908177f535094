// SPDX-License-Identifier: Apache-2.0
// The sizes of the family whose programs an executable tests. Each executable has its own.
#pragma once
#include <string_view>

namespace audit {

extern const int plans_of_family;  // in the whole family; a build may contain a sample
extern const std::string_view audited_layout;

}  // namespace audit
