// SPDX-License-Identifier: Apache-2.0
// The communicators over which squares of a gradient's shards are summed for the norm.
#pragma once
#include <rankc/codegen/program.hpp>

#include <cstddef>
#include <set>

namespace rankc::codegen::proof {

struct shard_groups {
  std::set<int> communicators;
  bool count_twice;  // whether sums over them have a rank's part twice
};

/// The communicators over which sum `g` of a rank has shards, in their order, but for those whose members the
/// sums before them reach.
shard_groups groups_of_shards(const program&, int rank, std::size_t g);

}  // namespace rankc::codegen::proof
