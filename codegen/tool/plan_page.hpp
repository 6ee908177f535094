// SPDX-License-Identifier: Apache-2.0
// The findings of a search as a self-contained page: templates/plans.html, filled.
#pragma once
#include <string>
#include <string_view>

#include "plan_findings.hpp"

namespace rankc::tool {

/// Shapes: at least one plan was found.
std::string page_of(const plan_request&, const plan_findings&);

/// True if a file with this beginning is such a page.
bool is_plans_page(std::string_view beginning);

}  // namespace rankc::tool
