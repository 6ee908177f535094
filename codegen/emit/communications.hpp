// SPDX-License-Identifier: Apache-2.0
// The communication of the ranks of a pipeline coordinate in a step, counted over the items of their program.
#pragma once
#include <rankc/codegen/lowered.hpp>

namespace rankc::codegen {

/// The communications of a rank in a step that have one kind, one axis and one phase.
struct communications {
  std::string_view phase, kind, axis;  // "forward", "all_gather", "dp_shard"
  dtype type = dtype::f32;
  bool is_index = false;   // i32; false: `type`
  int ranks = 1;           // ranks of the group; 2 for a message
  std::int64_t count = 0;  // the tensors of one gather or reduce_scatter item count once
  std::int64_t tensors = 0;
  // The result of an all_gather, the input of a reduce_scatter or an all_reduce, a message, or slabs of
  // slots.
  std::int64_t elements = 0;

  std::string type_name() const;
  /// The bytes that the rank sends in a ring, or to each other rank.
  /// Units: bytes. Source: (n-1)/n of the elements for all_gather, reduce_scatter and exchanges, twice that
  /// for all_reduce (Patarasuk and Yuan 2009).
  double sent() const;
};

/// Counts the communications of the plan's step, in the order of phases: forward, backward, step.
std::vector<communications> count_communications(const lowered&, const pipeline_rank&);

}  // namespace rankc::codegen
