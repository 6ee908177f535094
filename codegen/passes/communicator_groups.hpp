// SPDX-License-Identifier: Apache-2.0
// The communicators of a plan as rules over the mesh. The pass over ranks and the generated text expand them
// by the same function, each_communicator.
#pragma once
#include <rankc/codegen/lowered.hpp>
#include <rankc/runtime/rank_tables.hpp>

#include <array>
#include <string>
#include <vector>

namespace rankc::codegen {

/// A runtime::group_communicator that owns its names.
struct communicator_rule {
  std::string name;
  runtime::over over;
  std::string lane, second_lane = {};
  int first = -1, second = -1;
};

/// A runtime::group_rule that owns its communicators.
struct communicator_group {
  std::array<runtime::coordinate, runtime::most_across> across = {};
  std::vector<communicator_rule> communicators = {};
  std::array<runtime::place_word, runtime::most_words> place = {};
};

/// The groups in the order in which communicators are created, the innermost first. Pairs of pipeline ranks
/// come with the groups of their pipeline. The lanes of the pipeline ranks must be known.
std::vector<communicator_group> list_communicator_groups(const lowered&);

/// The coordinates that a rank's row in the program has.
runtime::rank_rule coordinates_of_ranks(const parallel_dims&);

}  // namespace rankc::codegen
