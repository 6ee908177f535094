// SPDX-License-Identifier: Apache-2.0
// Pipeline edges between GPUs that map each other's memory: copy engines carry the messages, and lanes wait
// for words in pinned memory. No multiprocessor has a part in it.
#pragma once
#include <rankc/runtime/cuda/context.hpp>

#include "../device/stream_words.hpp"

#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace rankc::runtime::cuda {

/// A directed edge. The places of its messages, by whether the step evaluates and by number, are named by the
/// receiver while it tries its steps out alone: an addressee is known before anybody sends.
struct peer_edge {
  // Each 1 until the other end has taken it: whether the receiver's place is free for the next message, and
  // whether the message is there.
  volatile std::uint32_t *is_free, *is_there;
  std::map<std::pair<bool, int>, std::byte*> places;
};

/// Enqueue one message; messages of an edge are matched in their order.
/// Errors: failure (70), also where the receiver has no place for it.
void send_to_peer(const lane&, const peer_edge&, message, const std::byte* from, std::size_t bytes);
void receive_from_peer(const lane&, peer_edge&, message, std::byte* to);

/// The edges of all ranks of this process, and their words.
class peer_edges {
 public:
  /// Makes an edge of every pair of the description whose GPUs map each other, and tells both ranks.
  /// Errors: failure (70) naming the rank.
  peer_edges(const description&, const std::vector<std::unique_ptr<context>>& ranks);

  /// Whether this communicator of the description is such an edge, and needs no NCCL.
  bool has(int group_index) const { return edges_[static_cast<std::size_t>(group_index)] != nullptr; }

  /// From here on no lane waits for a word: a rank has failed.
  void let_go() { words_.let_go(); }

 private:
  stream_words words_;                             // by communicator of the description
  std::vector<std::unique_ptr<peer_edge>> edges_;  // in the same order; null: none
};

}  // namespace rankc::runtime::cuda
