// SPDX-License-Identifier: Apache-2.0
// The checks of a program's tables at install, before a rank uses them. Generated tables always pass. A
// program of another runtime version, or one edited by hand, may fail.
#pragma once
#include <rankc/runtime/host/rank.hpp>

namespace rankc::runtime::host {

/// Checks the tables of a program.
/// Errors: failure (1) that names the first wrong table entry, and a right one.
void check(const program&);

}  // namespace rankc::runtime::host
