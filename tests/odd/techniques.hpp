// SPDX-License-Identifier: Apache-2.0
// A GPT-2 and a Llama split by every technique, by every pair of techniques, and by more.
#pragma once
#include "plans.hpp"

#include <set>

namespace odd {

/// The techniques that a plan uses, by name: "tp", "zero_bubble_v".
using techniques = std::set<std::string>;

/// The pipeline schedules, each of which implies microbatches; and the other techniques.
inline constexpr const char* order_names[]{"one_f_one_b", "interleaved_one_f_one_b", "zero_bubble_v",
                                           "dual_pipe_v"};
inline constexpr const char* other_names[]{"dp_replicate", "after_layer",  "after_stage",
                                           "after_step",   "tp",           "sequence_parallel",
                                           "recompute",    "microbatches", "cp"};
bool is_order(const std::string&);

/// Whether one plan can use both; some exclude each other.
bool go_together(const std::string& a, const std::string& b);

/// Plans on one rank, with one microbatch and with three, then split ones.
std::vector<split_plan> plans_of_techniques();

}  // namespace odd
