// SPDX-License-Identifier: Apache-2.0
// The part of forward that backward repeats instead of saving its results.
#pragma once
#include <rankc/codegen/lowered.hpp>

#include <string>
#include <vector>

namespace rankc::codegen {

/// The saved bytes and the repeated nodes of layers of one form.
struct repetition {
  std::string layer;
  // Bytes of a microbatch: saved from forward on, saved between the halves of backward, and saved without
  // recomputation.
  std::size_t kept = 0, halfway = 0, without = 0;
  std::size_t nodes = 0, collectives = 0;  // nodes that backward repeats; the collectives among them
  double flops = 0, share = 0;             // FLOPs of these per token; as a share of forward's
};
/// One entry for each form of layer that recomputes.
std::vector<repetition> repetitions(const lowered&);

/// "recomputation: full, in every repeated layer", and a line for each form; empty without recomputation.
std::string repetitions_text(const lowered&);

}  // namespace rankc::codegen
