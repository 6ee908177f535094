// SPDX-License-Identifier: Apache-2.0
// Pipeline edges between GPUs that map each other's memory. Copy engines carry the messages, and lanes wait
// for words in pinned memory. Messages use no multiprocessor.
#pragma once
#include <rankc/runtime/cuda/context.hpp>

#include "../device/stream_words.hpp"

#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace rankc::runtime::cuda {

/// A directed edge. `places` contains the address of each message, by kind of step (true: evaluation) and
/// message number. The receiver enters them while it tries its steps out alone, so the sender knows each
/// address before the first message.
struct peer_edge {
  // Each word is 1 until the other end resets it. is_free: the receiver's buffer is free for the next
  // message. is_there: the message has arrived.
  volatile std::uint32_t *is_free, *is_there;
  std::map<std::pair<bool, int>, std::byte*> places;
};

/// Enqueue one message. Messages of an edge are matched in order.
/// Errors: failure (70), also if the receiver has no buffer for it.
void send_to_peer(const lane&, const peer_edge&, message, const std::byte* from, std::size_t bytes);
void receive_from_peer(const lane&, peer_edge&, message, std::byte* to);

/// The edges of all ranks of this process, and their words.
class peer_edges {
 public:
  /// Creates an edge for every pair of the description whose GPUs map each other, and sets it in both ranks'
  /// links.
  /// Errors: failure (70) that names the rank.
  peer_edges(const description&, const std::vector<std::unique_ptr<context>>& ranks);

  /// True if this communicator of the description is such an edge and needs no NCCL.
  bool has(int group_index) const { return edges_[static_cast<std::size_t>(group_index)] != nullptr; }

  /// Releases all lanes that wait for a word, now and later, after a rank has failed.
  void let_go() { words_.let_go(); }

 private:
  stream_words words_;                             // by communicator of the description
  std::vector<std::unique_ptr<peer_edge>> edges_;  // in the same order; null: no edge
};

}  // namespace rankc::runtime::cuda
