// SPDX-License-Identifier: Apache-2.0
// The example plans of dsl/plans, and constants that the compiler counts for them. One library compiles both
// for all tests, because the compiler evaluates each constant again in every source that names it.
#pragma once
#include <rankc/stages/plan_data.hpp>

#include <cstddef>
#include <string_view>
#include <vector>

namespace examples {

std::vector<rankc::plan_data> plans();
/// The example of this name.
/// Errors: std::logic_error if there is no such example.
rankc::plan_data plan(std::string_view name);

/// peak_bytes and comm_bytes of the examples, for the target of each plan's cluster unless named otherwise.
/// Units: bytes.
struct constants {
  double llama3_8b_sends = 0;
  std::size_t gpt_dp2_tp2_pp2 = 0, gpt_dual_pipe_v = 0, llama3_8b = 0, llama3_8b_on_host = 0;
};
extern const constants counted;

}  // namespace examples
