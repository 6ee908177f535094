// SPDX-License-Identifier: Apache-2.0
// What backward repeats of forward instead of keeping it.
#pragma once
#include <rankc/codegen/lowered.hpp>

#include <string>
#include <vector>

namespace rankc::codegen {

/// What layers of one form keep and repeat.
struct repetition {
  std::string layer;
  std::size_t kept = 0, halfway = 0,
              without = 0;  // bytes of a microbatch: from forward on, between the halves; if all were kept
  std::size_t nodes = 0, collectives = 0;  // that backward repeats; of these
  double flops = 0, share = 0;             // of these per token; of forward's
};
/// Those of the forms of layers that recompute.
std::vector<repetition> repetitions(const lowered&);

/// "recomputation: full, in every repeated layer", and a line for each form; nothing where nothing is
/// repeated.
std::string repetitions_text(const lowered&);

}  // namespace rankc::codegen
