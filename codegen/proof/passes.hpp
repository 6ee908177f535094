// SPDX-License-Identifier: Apache-2.0
// The passes of the proof and the data between them: all ops in one numbering, the joint event of each op, an
// order of the joint events, and the happens-before of one rank's ops as clocks over its streams.
#pragma once
#include <rankc/codegen/program.hpp>
#include <rankc/runtime/failure.hpp>

#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace rankc::codegen::proof {

/// The first sentences about what is wrong. More of them would repeat the same.
class findings {
 public:
  template <class... T>
  void add(runtime::sentence<std::type_identity_t<T>...> about, const T&... facts) {
    sentences_.push_back(runtime::say(about, facts...));
  }
  bool full() const { return sentences_.size() >= 20; }
  bool none() const { return sentences_.empty(); }
  std::vector<std::string> take() { return std::move(sentences_); }

 private:
  std::vector<std::string> sentences_;
};

/// Lists of ints, stored contiguously: list i is values[first[i]] .. values[first[i + 1]].
struct lists {
  std::vector<int> first{0}, values;
  std::span<const int> operator[](int i) const {
    return {values.data() + first[i], values.data() + first[i + 1]};
  }
  void close() { first.push_back(static_cast<int>(values.size())); }
};

/// All ops of all ranks in one numbering, rank by rank in issue order.
struct op_table {
  explicit op_table(const codegen::program&);
  const codegen::program& program;
  std::vector<const op*> ops;
  std::vector<int> rank;           // of each op
  std::vector<int> first_of_rank;  // the last entry is the number of ops
  std::vector<int> place;          // position of each op on its stream, from 1
  int size() const { return static_cast<int>(ops.size()); }
};

/// Ops that happen together: a send with its receive, or the members of a collective. Any other op is a
/// separate event.
struct joint_events {
  std::vector<int> of;  // event of each op
  lists members;        // ops of each event
  int size() const { return static_cast<int>(members.first.size()) - 1; }
};

/// Checks that indices are in range, waits point back, begin is first, end is last, and accesses are within
/// the arena.
void check_structure(const program&, findings&);

/// Checks each op alone: a write overlaps a read only if it replaces it, and another write only with the same
/// value; communication moves the bytes that it states; values have one type.
void check_contents(const program&, findings&);

/// Checks row-pipelined collectives: the GEMM is at most two ops away, and neither writes bytes that the
/// other uses.
void check_by_rows(const program&, findings&);

/// Matches the n-th send with the n-th receive, and the n-th collectives of all members.
joint_events match(const op_table&, findings&);

/// Checks that the operands of the members of a collective have one order, or the same offsets.
void check_operands(const op_table&, const joint_events&, findings&);

/// The ops of the same rank whose end an op waits for directly.
lists predecessors(const op_table&);

/// An order in which the joint events can happen. On a deadlock the finding states who waits for whom, and
/// the events that cannot happen come last.
std::vector<int> sequence(const op_table&, const joint_events&, const lists& predecessors, findings&);

/// Sets of ops. `of`: the set whose ops have surely started when an op ends.
struct known_starts {
  std::vector<int> of;  // of each op; -1: none
  lists sets;
};
known_starts starts_before_ends(const op_table&, const joint_events&);

/// Happens-before among the ops of one rank, through its own streams and through other ranks.
class clocks {
 public:
  clocks(const op_table&, const joint_events&, const lists& predecessors, const std::vector<int>& sequence);

  /// Computes the order of the ops of `rank` from its own streams and waits. It is sound, but order through
  /// other ranks is missing. O(ops of the rank).
  void turn_to_alone(int rank);
  /// Computes the order of the ops of `rank` from all ranks. O(ops of all ranks).
  void turn_to(int rank);

  /// The highest place on `stream` whose op has surely ended when `op` starts.
  int ended(int op, int stream) const { return start_[static_cast<std::size_t>(op) * streams_ + stream]; }
  /// True if `a` has surely ended when `b` starts. Both are ops of the rank turned to.
  bool before(int a, int b) const { return ended(b, table_.ops[a]->stream) >= table_.place[a]; }

 private:
  void raise(int* clock, const int* other) const;
  void start(int op);
  int* start_of(int op) { return start_.data() + static_cast<std::size_t>(op) * streams_; }
  int* end_of(int op) { return end_.data() + static_cast<std::size_t>(op) * streams_; }

  const op_table& table_;
  const joint_events& events_;
  const lists& predecessors_;
  const std::vector<int>& sequence_;
  const known_starts starts_;
  int streams_;
  std::vector<int> start_, end_;  // (ops of all ranks, streams)
};

/// Checks that the ops of a rank on one communicator are ordered as they are issued.
void check_communicators(const op_table&, const clocks&, int rank, findings&);

/// Checks that every byte that an op of the rank reads holds the value that the op names, from its start to
/// its end, and that no other op writes a byte that the op writes meanwhile.
void check_accesses(const op_table&, const clocks&, int rank, findings&);

}  // namespace rankc::codegen::proof
