// SPDX-License-Identifier: Apache-2.0
// Proves that a lowered program cannot hang, mismatch a message, read a wrong byte, or write a byte from two
// ops at once, read or not, in whatever way its streams interleave. The proof holds for every transport. The
// program does not hang if each send waits for its receive. It has no race if sends return at once. That the
// values are the model's is the claim of equivalence.hpp.
#pragma once
#include <rankc/codegen/program.hpp>

#include <string>
#include <vector>

namespace rankc::codegen {

/// What the proof found.
/// Shapes: position is (ranks, ops of the rank): the op's place in an order of all joint events; ops that
///         meet share a place, and so may ops that nothing orders. It is empty where the structure is broken.
struct verdict {
  bool ok = false;
  std::vector<std::string> reasons;  // sentences with ids, about twenty at most; empty when ok
  std::vector<std::vector<int>> position;
};

/// Prove a program, or say why it is wrong: structure, matching, deadlock, order on a communicator, races.
///
/// An op starts when its stream and the ops in `waits` have ended; it touches its bytes at any time from then
/// to its end. A receive or a collective ends after every side has started; a shift after the member that it
/// receives from has; of a row-pipelined collective and its product the last ends after the pairs of all
/// members have started. A send may end at once (on a transport that buffers) or only after its receive has
/// started (on one that does not): the first is assumed where it could race, the second where it could hang.
///
/// Members of a collective find its tensors behind one pointer each: these lie in one order on all members,
/// and at equal offsets where the members' arenas have one layout: kernels then read the other arenas.
/// Errors: never throws on a wrong program.
verdict prove(const program&);

}  // namespace rankc::codegen
