// SPDX-License-Identifier: Apache-2.0
// The programs of a family that every build compiles; the tests with the label `long` compile all of them.
#pragma once
#include "family_program.hpp"

#include <set>
#include <string>
#include <vector>

/// The traits of a program: each axis of its layout, each pair of axes, its schedule, whether it has forwards
/// alone, its recipe, the kinds of its ops, its element type, and several ranks or recomputation for its job.
std::set<std::string> traits_of(const family_program&);

/// The programs on one rank, each program with a trait that no earlier program has, and the first program of
/// its job, which tests compare it with.
std::vector<family_program> sample(std::vector<family_program>);
