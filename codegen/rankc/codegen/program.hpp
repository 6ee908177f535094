// SPDX-License-Identifier: Apache-2.0
// The rank program after lowering: for every rank the list of its ops in issue order, each with its stream, the
// events it waits for, the bytes it reads and writes, and what it communicates. This is what is placed, proven,
// certified and printed. A value is a name for the contents of some bytes: it is written by one op and read by
// others; an accumulation reads one value and writes the next. All ops are asynchronous on their streams.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace rankc::codegen {

/// Bytes [begin, end) of the rank's arena holding `value` (unique within the whole program).
struct access {
  std::size_t begin = 0, end = 0;
  int value = -1;
  bool operator==(const access&) const = default;
};

enum class op_kind {
  begin,    // first op of a rank: writes the values that exist before the step; every stream starts after it
  compute,  // a kernel
  send,     // to `peer`, on `communicator`
  receive,
  collective,  // all members of `communicator`, in the same order
  end,      // last op of a rank: waits for every stream, reads the values that must exist after the step
};

struct op {
  op_kind kind = op_kind::compute;
  std::string name;  // "1F0: block 2: linear wq"; the same on both sides for communication: "F0: stage 0 -> 1"
  int stream = 0;    // index of runtime::stream
  std::vector<int> waits;  // ops of this rank, earlier in issue order, whose end this op waits for
  std::vector<access> reads, writes;
  int communicator = -1;  // communication only: index into program::communicators
  int peer = -1;          // send, receive: the other rank (a global rank number)
  std::size_t bytes = 0;  // communication only: per rank, as both sides must agree on it
  int message = -1;       // communication only: the site's index, the same on all sides
  int action = -1;        // index of the action this op belongs to; -1: none
};

struct rank_program {
  std::vector<op> ops;
  std::size_t arena_bytes = 0;
  int number = -1;  // among the ranks of the world; -1: its index
};

struct communicator {
  std::string name;
  std::vector<int> ranks;
};

struct program {
  std::string plan;             // the plan's name
  std::uint64_t plan_hash = 0;
  int streams = 0;
  std::vector<communicator> communicators;
  std::vector<rank_program> ranks;
  int world = 0;  // more than there are ranks where these stand for all; 0: as many
  std::string step = "step";  // what it is a program of: "train", "evaluate"
};

}  // namespace rankc::codegen
