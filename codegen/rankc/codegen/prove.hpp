// SPDX-License-Identifier: Apache-2.0
// Proves that a lowered program cannot hang, cannot mismatch a message and cannot read a wrong byte, in
// whatever way its streams interleave. What is proven of a program is stronger than what one transport
// promises: that it cannot hang holds without any buffering of sends, that it cannot race holds with any
// amount of it.
#pragma once
#include <rankc/codegen/program.hpp>

#include <string>
#include <vector>

namespace rankc::codegen {

/// What the proof found.
struct verdict {
  bool ok = false;
  std::vector<std::string> reasons;  // what is wrong, a sentence each, the first twenty; empty when ok
  std::vector<std::vector<int>>
      position;  // witness: place of each rank's op in one order of all joint events
};

/// Prove a program, or say why it is wrong: structure, matching, deadlock, order on a communicator, races.
///
/// An op starts when its stream and the ops in `waits` have ended; it touches its bytes at any time from then
/// to its end. A receive or a collective ends after every side has started. A send may end at once (a
/// transport that buffers) or only when its receive has started (one that does not): the first is assumed
/// where it could race, the second where it could hang. Shapes: verdict::position is (ranks, ops of the
/// rank); matched ops share a place. Errors: never throws on a wrong program; `position` is empty when its
/// structure or matching is broken.
verdict prove(const program&);

}  // namespace rankc::codegen
