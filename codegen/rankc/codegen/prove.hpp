// SPDX-License-Identifier: Apache-2.0
// Proves that no interleaving of a lowered program's streams hangs, mismatches a message, reads a wrong byte
// or lets two ops write a byte at once, whether it is read or not. The proof holds for every transport: the
// program does not hang even if each send waits for its receive, and has no race even if sends return at
// once. equivalence.hpp claims that the values are the model's.
#pragma once
#include <rankc/codegen/program.hpp>

#include <string>
#include <vector>

namespace rankc::codegen {

/// The result of the proof.
/// Shapes: position is (ranks, ops of the rank): the op's place in one order of the ops of all ranks. A send
/// and its receive share a place, and so do the calls of a collective. Ops that nothing orders may share one.
/// It is empty if the structure is broken.
struct verdict {
  bool ok = false;
  std::vector<std::string> reasons;  // sentences with ids, about twenty at most; empty if ok
  std::vector<std::vector<int>> position;
};

/// Proves a program, or says why it is wrong: structure, matching, deadlock, order on a communicator, races.
///
/// An op starts when the op before it on its stream and the ops in `waits` have ended. It may touch its bytes
/// at any time until its end. A receive or a collective ends after every side has started. A shift ends after
/// the member that it receives from has started. The last op of a row-pipelined pair ends after the pairs of
/// all members have started. A send may end at once (on a transport that buffers), or only after its receive
/// has started (on one that does not). The proof of no race assumes the first, the proof of no hang the
/// second.
///
/// A call of a collective has one pointer for its inputs and one for its results. Its tensors must lie behind
/// these in one order on all members. They must lie at equal offsets if the members' arenas have one layout,
/// because kernels then read other members' arenas at the offsets of their own operands.
/// Errors: never throws on a wrong program.
verdict prove(const program&);

}  // namespace rankc::codegen
