// SPDX-License-Identifier: Apache-2.0
// Rows that go between the GPUs of a communicator while its ranks compute with others of them: copy engines
// move them, a part at a time, where GPUs map each other's memory and no step is timed call by call.
// `run_by_rows` (calls.hpp) says what computes.
#pragma once
#include <rankc/runtime/cuda/rank.hpp>

namespace rankc::runtime::cuda {

/// What of a rank moves: as many parts as there are members.
struct moving_rows {
  const lane* on = nullptr;  // null: nothing moves so
  const peer_group* group = nullptr;
  std::byte *to = nullptr, *from = nullptr;
  std::size_t bytes = 0;  // of a part

  bool any() const { return on != nullptr; }
};

/// The parts of all come to `to`.
class gathered_rows : moving_rows {
 public:
  gathered_rows() = default;
  explicit gathered_rows(const moving_rows& rows) : moving_rows(rows) {}
  using moving_rows::any;

  /// The part that a step is for: this rank's own first, where it was made; the lane waits until it is there.
  std::size_t arrive(std::size_t step) const;
  /// All are there, and nobody reads this rank's any longer.
  void end() const;
};

/// The parts of `from` go to the members that they are for, who sum them up.
template <class T>
class dealt_rows : moving_rows {
 public:
  dealt_rows() = default;
  explicit dealt_rows(const moving_rows& rows) : moving_rows(rows) {}
  using moving_rows::any;

  /// The part that a step is for, this rank's own last.
  std::size_t next(std::size_t step) const;
  /// It has been made.
  void leave(std::size_t step) const;
  /// The sum is made: terms in the order of the ranks, in f32, rounded once. `from` holds nothing after it.
  void end() const;

 private:
  std::byte* arrival(std::size_t step) const;  // where what is left in a step arrives
};

/// Shapes: as all_gather, and as reduce_scatter.
/// Errors: failure (70) where the lane has no such communicator.
template <class T>
gathered_rows gather_by_rows(const lane&, over, message, at to, at from, std::size_t count);
template <class T>
dealt_rows<T> deal_by_rows(const lane&, over, message, at to, at from, std::size_t count);

}  // namespace rankc::runtime::cuda
