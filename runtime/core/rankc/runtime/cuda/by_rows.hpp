// SPDX-License-Identifier: Apache-2.0
// Rows that move between the GPUs of a communicator while its ranks compute with other rows. Copy engines
// move one part at a time. This needs GPUs that map each other's memory, and a step that is not timed call by
// call. `run_by_rows` (calls.hpp) runs the computation.
#pragma once
#include <rankc/runtime/cuda/rank.hpp>

namespace rankc::runtime::cuda {

/// The rows of a rank that move, with one part for each member.
struct moving_rows {
  const lane* on = nullptr;  // null: the rows do not move in parts
  const peer_group* group = nullptr;
  std::byte *to = nullptr, *from = nullptr;
  std::size_t bytes = 0;  // size of one part

  bool any() const { return on != nullptr; }
};

/// An all-gather: the parts of all members arrive in `to`.
class gathered_rows : moving_rows {
 public:
  gathered_rows() = default;
  explicit gathered_rows(const moving_rows& rows) : moving_rows(rows) {}
  using moving_rows::any;

  /// Makes the lane wait for the part of a step and returns its index. The first part is the rank's own, at
  /// its source.
  std::size_t arrive(std::size_t step) const;
  /// Makes the lane wait until all parts have arrived and no member reads this rank's part.
  void end() const;
};

/// A reduce-scatter: each part of `from` goes to one member, which adds up the parts that it receives.
template <class T>
class dealt_rows : moving_rows {
 public:
  dealt_rows() = default;
  explicit dealt_rows(const moving_rows& rows) : moving_rows(rows) {}
  using moving_rows::any;

  /// The part that a step computes. The rank's own part is the last.
  std::size_t next(std::size_t step) const;
  /// Sends the part of a step, which has been computed.
  void leave(std::size_t step) const;
  /// Adds up the parts in the order of the ranks, in f32, with one rounding. The contents of `from` are
  /// destroyed.
  void end() const;

 private:
  std::byte* arrival(std::size_t step) const;  // the address at which the part received in a step arrives
};

/// Start an all-gather or a reduce-scatter whose rows move in parts.
/// Shapes: as all_gather and reduce_scatter.
/// Errors: failure (70) if the lane has no such communicator.
template <class T>
gathered_rows gather_by_rows(const lane&, over, message, at to, at from, std::size_t count);
template <class T>
dealt_rows<T> deal_by_rows(const lane&, over, message, at to, at from, std::size_t count);

}  // namespace rankc::runtime::cuda
