// SPDX-License-Identifier: Apache-2.0
// What the ranks of a pipeline coordinate communicate in a step, counted over the items of their program.
#pragma once
#include <rankc/codegen/lowered.hpp>

namespace rankc::codegen {

/// The communications of a rank in a step that are of one kind, over one axis and in one phase.
struct communications {
  std::string_view phase, kind, axis;  // "forward", "all_gather", "dp_shard"
  dtype type = dtype::f32;
  bool is_index = false;   // i32, else of the type
  int ranks = 1;           // of the group; 2 of a message
  std::int64_t count = 0;  // tensors that go together count once
  std::int64_t tensors = 0;
  // an all_gather's result, what a reduce_scatter or an all_reduce is given, a message, slabs of slots
  std::int64_t elements = 0;

  std::string type_name() const;
  /// What the rank sends in a ring, or to each other rank.
  /// Units: bytes. Source: (n-1)/n of the elements for all_gather, reduce_scatter and exchanges, twice that
  /// for all_reduce (Patarasuk and Yuan 2009).
  double sent() const;
};

/// Those of the step that the plan is for, in the order of phases: forward, backward, step.
std::vector<communications> count_communications(const lowered&, const pipeline_rank&);

}  // namespace rankc::codegen
