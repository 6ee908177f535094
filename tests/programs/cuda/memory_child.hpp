// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "registry.hpp"

/// The process of a program's ranks: takes steps of each kind, writes a byte to stdout, and keeps what it holds until
/// stdin ends.
/// Shapes: words: plan's job and layout, rank (-1: all), device, meeting point ("" without).
int hold_program(const std::vector<std::string>& words);
