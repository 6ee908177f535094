// SPDX-License-Identifier: Apache-2.0
// Ranks of a communicator whose GPUs map each other: a kernel of one reads and writes the arenas of all,
// between meetings.
#pragma once
#include <rankc/runtime/cuda/context.hpp>

#include "../device/stream_words.hpp"

#include <memory>
#include <vector>

namespace rankc::runtime::cuda {

inline constexpr int most_mapped = 16;

/// What the ranks of a group signal one of them with, on its GPU.
struct alignas(128) meeting_words {
  unsigned long long arrived[most_mapped];  // by member, who writes it: meetings that the member has come to
  unsigned long long met;                   // meetings that this rank has come to
  unsigned failed;                          // not 0 once a rank has failed: nobody reads or writes any longer
};

/// A group as one of its ranks sees it. By member, itself included.
struct peer_group {
  int ranks = 0, place = 0;
  std::byte* arenas[most_mapped]{};
  meeting_words* words[most_mapped]{};
  volatile std::uint32_t* parts =
      nullptr;  // of rows that copy engines move (by_rows.cpp): two for each member and each other

  /// Where something of this rank's arena lies from its begin on. Units: bytes.
  std::size_t offset_of(const void* at) const {
    return static_cast<std::size_t>(static_cast<const std::byte*>(at) - arenas[place]);
  }
};

/// Whether all multiprocessors read the other GPUs' memory in a collective: computation waits for it. Beside
/// computation NCCL's few blocks leave it more of them.
inline bool reads_peers(const lane& on, const lane_link& k) { return k.mapped != nullptr && on.computes(); }

/// What is put on the lane from here on waits until every rank has come here, with all that it did before.
void meet(const lane&, const peer_group&);

/// Run the kernel once without a group, as load_peer_kernels does.
void load_meeting(const lane&);

/// The groups of all ranks of this process: of each communicator of the description over `ep` and `tp`.
class peer_groups {
 public:
  /// Makes a group of each whose GPUs all map each other, and tells its ranks.
  /// Errors: failure (70) naming the rank.
  peer_groups(const description&, const std::vector<std::unique_ptr<context>>& ranks);
  ~peer_groups();
  /// From here on no lane waits for rows of another rank: a rank has failed.
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
