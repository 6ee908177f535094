// SPDX-License-Identifier: Apache-2.0
// Carries out the communications of one communicator whose other members are other processes. Before any data
// moves, the members exchange descriptions of the communication. Sums run in member order, in the code that
// also reduces between threads.
#pragma once
#include "transfer.hpp"

#include <rankc/runtime/peers.hpp>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace rankc::runtime::host {

/// A member's description of its next communication. `site` and `action` are truncated to fit.
struct greeting {
  std::uint64_t plan_hash = 0;
  std::int64_t step = 0;
  std::uint64_t count = 0, second_count = 0;
  std::int32_t rank = 0, kind = 0, index = 0, element = 0, type = 0, how = 0, communicator = 0;
  char site[120] = {}, action[32] = {};

  greeting() = default;
  explicit greeting(const op&);
  /// The op that the greeting describes. Its texts point into this greeting.
  op as_op() const;
};

class carrier {
 public:
  /// `mismatch` returns a text about the difference of two ops.
  carrier(runtime::transport&, std::span<const int> ranks, int communicator, int own_rank,
          std::function<std::string(const op&, const op&)> mismatch);

  /// Moves the data of this rank's next communication, and returns when its result is complete.
  /// Errors: failure (70) if another member has a different communication, (77) if a member does not answer.
  void carry(const op& mine);
  /// Skips a communication, as if it were done.
  void lose(const op& mine) { moves_ += takes_two_moves(mine.kind) ? 3 : 2; }

 private:
  static bool takes_two_moves(op_kind k) {
    return k == op_kind::all_reduce || k == op_kind::shift || k == op_kind::shift_back;
  }
  void greet(const op& mine);
  void exchange(const std::vector<runtime::transport::outgoing>&,
                const std::vector<runtime::transport::incoming>&);
  void gather(const std::byte* from, std::byte* to, std::size_t bytes);
  void all_reduce(const op& mine);
  void reduce_scatter(const op& mine);
  void all_to_all(const op& mine);
  void shift(const op& mine);
  void sum_of_all(const op& mine, std::size_t first, std::size_t count, std::byte* to);
  std::size_t members() const { return ranks_.size(); }

  runtime::transport& wires_;
  const std::span<const int> ranks_;
  const std::uint64_t communicator_;
  std::size_t own_ = 0;  // this rank's place among the members
  const std::function<std::string(const op&, const op&)> mismatch_;
  std::uint64_t moves_ = 0;  // so far; equal on all members
  std::vector<greeting> greetings_;
  std::vector<std::byte> arrived_;  // has the size of the largest reduction so far: grows in the first step
};

}  // namespace rankc::runtime::host
