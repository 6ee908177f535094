// SPDX-License-Identifier: Apache-2.0
// What install demands of a program's tables before any rank trusts them. Generated tables always pass; a
// program of another runtime version, or one edited by hand, may not.
#pragma once
#include <rankc/runtime/host/rank.hpp>

namespace rankc::runtime::host {

/// Errors: failure (1) naming the first table entry that does not hold, and what would.
void check(const program&);

}  // namespace rankc::runtime::host
