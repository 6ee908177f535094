// SPDX-License-Identifier: Apache-2.0
// Ranks of a communicator whose GPUs map each other's memory. A kernel of one rank reads and writes the
// arenas of all ranks, between two barriers.
#pragma once
#include <rankc/runtime/cuda/context.hpp>

#include "../device/stream_words.hpp"

#include <memory>
#include <vector>

namespace rankc::runtime::cuda {

inline constexpr int most_mapped = 16;

/// The words with which the ranks of a group signal one of them, on its GPU.
struct alignas(128) meeting_words {
  unsigned long long arrived[most_mapped];  // by member, who writes it: barriers that it has reached
  unsigned long long met;                   // barriers that this rank has reached
  unsigned failed;                          // not 0 after a rank has failed: no kernel then reads or writes
};

/// A group as one of its ranks sees it. Arrays are indexed by member, the rank included.
struct peer_group {
  int ranks = 0, place = 0;
  std::byte* arenas[most_mapped]{};
  meeting_words* words[most_mapped]{};
  volatile std::uint32_t* parts =
      nullptr;  // for rows that copy engines move (by_rows.cpp): two words for each ordered pair of members

  /// The offset of an address in this rank's arena.
  /// Units: bytes.
  std::size_t offset_of(const void* at) const {
    return static_cast<std::size_t>(static_cast<const std::byte*>(at) - arenas[place]);
  }
};

/// True if a collective reads the other GPUs' memory with all multiprocessors. It does if computation waits
/// for it. A collective that overlaps computation uses NCCL, whose few blocks leave more multiprocessors to
/// the computation.
inline bool reads_peers(const lane& on, const lane_link& k) { return k.mapped != nullptr && on.computes(); }

/// A barrier: later work of the lane waits until every rank has reached it and all its earlier work is done.
void meet(const lane&, const peer_group&);

/// Runs the barrier's kernel once without a group, so that CUDA has loaded it.
void load_meeting(const lane&);

/// The groups of all ranks of this process, one for each communicator of the description over `ep` or `tp`.
class peer_groups {
 public:
  /// Creates a group for each communicator whose GPUs all map each other, and sets it in the ranks' links.
  /// Errors: failure (70) that names the rank.
  peer_groups(const description&, const std::vector<std::unique_ptr<context>>& ranks);
  ~peer_groups();
  /// Releases all lanes that wait for another rank's rows, now and later, after a rank has failed.
  void let_go() { parts_.let_go(); }
  peer_groups(const peer_groups&) = delete;
  peer_groups& operator=(const peer_groups&) = delete;

 private:
  struct held {
    int device;
    meeting_words* words;
    peer_group seen;
  };
  stream_words parts_;
  std::vector<std::unique_ptr<held>> all_;
};

}  // namespace rankc::runtime::cuda
