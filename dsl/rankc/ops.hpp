// SPDX-License-Identifier: Apache-2.0
// What the header of a user's op includes: the ops that there are, and what a row is made of.
#pragma once
#include <rankc/ops/table.hpp>
