// SPDX-License-Identifier: Apache-2.0
// Interval placement, as the passes over a layer have it.
#pragma once
#include <rankc/program/intervals.hpp>

namespace rankc::codegen {

using rankc::program::aligned;
using rankc::program::alignment;
using rankc::program::lifetime;
using rankc::program::place_intervals;

}  // namespace rankc::codegen
