// SPDX-License-Identifier: Apache-2.0
// Pipeline edges between GPUs that map each other's memory: the receiver says where the next message is to
// go, the sender stores it there and says that it has come. Counters in device memory advance by themselves,
// so that a captured step can be replayed.
#pragma once
#include <rankc/runtime/cuda/context.hpp>

#include <memory>
#include <vector>

namespace rankc::cuda {

/// The words of an edge at one of its ends, on that end's GPU. The other end writes `ready` and `address`, or
/// `full`.
struct alignas(128) edge_words {
  unsigned long long ready;    // at the sender: messages that the receiver has named a place for
  unsigned long long address;  // at the sender: the last of these places
  unsigned long long full;     // at the receiver: messages that have come
  unsigned long long done;     // messages that this end has finished
  unsigned arrived;            // at the sender: blocks that have copied their share of a message
};

/// A directed edge as one of its ends sees it.
struct peer_edge {
  edge_words* mine = nullptr;
  edge_words* theirs = nullptr;
};

/// Enqueue one message; messages of an edge are matched in their order.
void store_to_peer(const lane&, const peer_edge&, const char* name, const std::byte* from, std::size_t bytes);
void receive_from_peer(const lane&, const peer_edge&, const char* name, std::byte* to);

/// Run each kernel once without an edge. CUDA loads a kernel when it first runs, and may wait for all that
/// run already: none of these may have its first run while another waits for its peer.
void load_peer_kernels(const lane&);

/// The edges of all ranks of this process, and their memory.
class peer_edges {
 public:
  /// Makes an edge of every pair of the description whose GPUs map each other, and tells both ranks.
  /// Errors: failure (70) naming the rank.
  peer_edges(const description&, const std::vector<std::unique_ptr<context>>& ranks);
  ~peer_edges();
  peer_edges(const peer_edges&) = delete;
  peer_edges& operator=(const peer_edges&) = delete;

  /// Whether this communicator of the description is such an edge, and needs no NCCL.
  bool has(int group_index) const { return made_[static_cast<std::size_t>(group_index)]; }

 private:
  struct held {
    int device;
    edge_words* words;  // (lanes)
  };
  std::vector<held> held_;
  std::vector<std::vector<peer_edge>> edges_;  // by rank and lane: what the lanes point to
  std::vector<bool> made_;
};

}  // namespace rankc::cuda
