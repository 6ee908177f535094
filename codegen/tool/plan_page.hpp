// SPDX-License-Identifier: Apache-2.0
// What a search found, as a page that stands alone: templates/plans.html, filled.
#pragma once
#include <string>
#include <string_view>

#include "plan_findings.hpp"

namespace rankc::tool {

/// Shapes: at least one plan was found.
std::string page_of(const plan_request&, const plan_findings&);

/// Whether a file that begins so is such a page.
bool is_plans_page(std::string_view beginning);

}  // namespace rankc::tool
