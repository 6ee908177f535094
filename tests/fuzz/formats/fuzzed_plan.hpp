// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <rankc/runtime/program.hpp>

namespace rankc::fuzz {

/// The plan that files are compared with: one rank, sequences of 8 tokens.
inline runtime::description fuzzed_plan() {
  runtime::description d{};
  d.name = "fuzzed";
  d.pp = d.dp = d.tp = 1;
  d.seq = 8;
  return d;
}

}  // namespace rankc::fuzz
