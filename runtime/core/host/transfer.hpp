// SPDX-License-Identifier: Apache-2.0
// One communication of a rank as it stands in a lane of the fabric, and the movement of its data once all
// partners have met. The data can be moved in pieces, by several threads at once.
#pragma once
#include <rankc/runtime/host/rank.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace rankc::runtime::host {

enum class op_kind {
  wait,
  send,
  receive,
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  shift,
  shift_back,
  work
};
const char* word(op_kind);

/// An entry of a lane. A wait names a lane of the same rank and how many of its entries must be complete;
/// work is an action for the lane's thread; the rest describes a communication, whose partners are matched
/// through
/// `communicator`.
/// Units: `count` elements of this rank's part, as rank.hpp has them; bytes for send and receive.
struct op {
  op_kind kind = op_kind::wait;
  int on = 0, awaited = 0;
  std::uint64_t position = 0;

  void (*work)(const lane&) = nullptr;  // null: the last of the step

  int rank = 0, worker = 0, communicator = -1, member = -1;  // worker: the thread that posted it (fabric.hpp)
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  std::byte* second_to = nullptr;  // of a shift, whose count is of both tensors
  const std::byte* second_from = nullptr;
  std::size_t second_count = 0;        // elements of the second tensor
  std::size_t count = 0, element = 1;  // element: bytes of one
  dtype type = dtype::f32;
  reduction reduce = reduction::sum;
  std::uint64_t plan_hash = 0;
  message what{-1, ""};
  const char* action = "";
  std::int64_t step = 0;
  traced* times = nullptr;  // of a timed step: receives when the data moved
  bool is_lost = false;     // on purpose: the others never get it
  op* next = nullptr;       // the communication that this rank posted next on the same communicator
};

/// Whether `b` may meet `a` on a communicator: same plan, message and size; a send meets a receive, a
/// collective meets its like.
bool agree(const op& a, const op& b);

/// Elements that a met communication moves, and moving elements [first, last) of them. Sums and maxima run in
/// the order of `members`, so the result does not depend on how the range is cut.
/// Shapes: members: one op per rank of the communicator, in its order; a result may lie on its own input
/// where
///         NCCL allows it (all_reduce, a rank's own part of all_gather and reduce_scatter).
std::size_t extent(std::span<op* const> members);
void move_elements(std::span<op* const> members, std::size_t first, std::size_t last);

/// The sums, or maxima, of the members' elements [0, count), in the same order.
void reduce_into(std::byte* to, std::span<op* const> members, std::size_t count);

}  // namespace rankc::runtime::host
