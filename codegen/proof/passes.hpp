// SPDX-License-Identifier: Apache-2.0
// The passes of the proof and what they hand on: all ops under one number, the joint event of each op, an
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

/// The first sentences about what is wrong; the rest would say the same again.
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

/// Lists of ints, one after the other: list i is values[first[i]] .. values[first[i + 1]].
struct lists {
  std::vector<int> first{0}, values;
  std::span<const int> operator[](int i) const {
    return {values.data() + first[i], values.data() + first[i + 1]};
  }
  void close() { first.push_back(static_cast<int>(values.size())); }
};

/// All ops of all ranks under one number, rank by rank in issue order.
struct op_table {
  explicit op_table(const codegen::program&);
  const codegen::program& program;
  std::vector<const op*> ops;
  std::vector<int> rank;           // of each op
  std::vector<int> first_of_rank;  // and the number of ops at the end
  std::vector<int> place;          // of each op on its stream, from 1
  int size() const { return static_cast<int>(ops.size()); }
};

/// Ops that happen together: a send with its receive, a collective's members; any other op alone.
struct joint_events {
  std::vector<int> of;  // event of each op
  lists members;        // ops of each event
  int size() const { return static_cast<int>(members.first.size()) - 1; }
};

/// Indices in range, waits that point back, begin first and end last, accesses within the arena.
void check_structure(const program&, findings&);

/// Writes lie over reads only where they may and on one another only with one value, communication moves the
/// bytes that it says, values have one type.
void check_contents(const program&, findings&);

/// Collectives that go at once with a product are neighbours of one, and neither writes what the other needs.
void check_by_rows(const program&, findings&);

/// The n-th send meets the n-th receive, the n-th collective of every member meets the others'.
joint_events match(const op_table&, findings&);

/// The operands of members that meet in a collective lie alike.
void check_operands(const op_table&, const joint_events&, findings&);

/// The ops of the same rank whose end an op's start waits for directly.
lists predecessors(const op_table&);

/// Joint events in an order in which they can happen. On a deadlock the finding spells out who waits for
/// whom, and the events that cannot happen come last.
std::vector<int> sequence(const op_table&, const joint_events&, const lists& predecessors, findings&);

/// Sets of ops, and the set that has surely started when an op ends.
struct known_starts {
  std::vector<int> of;  // of each op; -1: none
  lists sets;
};
known_starts starts_before_ends(const op_table&, const joint_events&);

/// Happens-before among the ops of one rank, through this and all other ranks.
class clocks {
 public:
  clocks(const op_table&, const joint_events&, const lists& predecessors, const std::vector<int>& sequence);

  /// Turn to the ops of `rank`, as its own streams and waits order them: all of that holds, but through other
  /// ranks more may. O(ops of the rank).
  void turn_to_alone(int rank);
  /// Turn to the ops of `rank`, as all ranks order them; O(ops of all ranks).
  void turn_to(int rank);

  /// The highest place on `stream` whose op has surely ended when `op` starts.
  int ended(int op, int stream) const { return start_[static_cast<std::size_t>(op) * streams_ + stream]; }
  /// Whether `a` has surely ended when `b` starts; both ops of the rank turned to.
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

/// The ops of a rank on one communicator are ordered as they are issued.
void check_communicators(const op_table&, const clocks&, int rank, findings&);

/// Every byte that an op of the rank reads holds the value it names, from the op's start to its end, and no
/// other op writes a byte that it writes meanwhile.
void check_accesses(const op_table&, const clocks&, int rank, findings&);

}  // namespace rankc::codegen::proof
