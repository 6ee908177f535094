// SPDX-License-Identifier: Apache-2.0
// One communication of a rank as an entry of a lane of the fabric, and the movement of its data after all
// partners have posted it. Several threads may move parts of the data at once.
#pragma once
#include <rankc/runtime/host/rank.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
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

/// An entry of a lane. A wait names a lane of the same rank and the number of its entries that must be
/// complete. Work is an action for the lane's thread. All other kinds are communications, whose partners are
/// matched through `communicator`.
/// Units: `count` elements of this rank's part, as in rank.hpp; bytes for send and receive.
struct op {
  op_kind kind = op_kind::wait;
  int on = 0, awaited = 0;
  std::uint64_t position = 0;

  std::function<void(const lane&)> work;  // empty: the last entry of the step

  int rank = 0, worker = 0, communicator = -1, member = -1;  // worker: the thread that posted it (fabric.hpp)
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  std::byte* second_to = nullptr;  // for a shift, whose count includes both tensors
  const std::byte* second_from = nullptr;
  std::size_t second_count = 0;        // elements of the second tensor
  std::size_t count = 0, element = 1;  // element: bytes of an element
  dtype type = dtype::f32;
  reduction reduce = reduction::sum;
  std::uint64_t plan_hash = 0;
  message what{-1, ""};
  const char* action = "";
  std::int64_t step = 0;
  traced* times = nullptr;  // in a timed step: receives the times of the data movement
  bool is_lost = false;     // injected fault: the other ranks never receive it
  op* next = nullptr;       // the communication that this rank posted next on the same communicator
};

/// True if `a` and `b` may communicate: same plan, message and size, and a send with a receive, or two
/// collectives of the same kind.
bool agree(const op& a, const op& b);

/// `extent` is the number of elements that a communication moves. `move_elements` moves elements [first,
/// last) of them. Reductions run in the order of `members`, so the result does not depend on the ranges.
/// Shapes: members: one op per rank of the communicator, in its order. A result may overlap its own input in
/// the cases of NCCL (all_reduce, a rank's own part of all_gather and reduce_scatter).
std::size_t extent(std::span<op* const> members);
void move_elements(std::span<op* const> members, std::size_t first, std::size_t last);

/// Reduces the members' elements [0, count), in the same order.
void reduce_into(std::byte* to, std::span<op* const> members, std::size_t count);

}  // namespace rankc::runtime::host
