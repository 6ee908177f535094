// SPDX-License-Identifier: Apache-2.0
// The NCCL communicators of a program. They are non-blocking: a call returns at once, and `check` waits for
// it.
#pragma once
#include "peer_edges.hpp"
#include <rankc/runtime/placement.hpp>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

namespace rankc::runtime::cuda {

/// The thread blocks that NCCL may use on a GPU for a communicator: at most `most_blocks`; for all-reduces
/// that overlap computation at least `least_blocks_of_sums`; for shards at most `most_blocks_of_shards`.
/// waiting_blocks.hpp checks that the blocks of all lanes fit on the GPU.
inline constexpr int most_blocks = 16, least_blocks_of_sums = 12, most_blocks_of_shards = 8;

constexpr int most_blocks_of(over what, bool is_waited_for) {
  const bool is_of_shards = what == over::shard || what == over::efsdp;
  return is_of_shards && !is_waited_for ? most_blocks_of_shards : most_blocks;
}

/// Creates all communicators in the description's order, gives each lane its own, and registers the ranks'
/// arenas with them.
class communicators {
 public:
  /// Creates all communicators that are not `edges`. `ranks` is indexed by rank, with null for ranks of other
  /// processes. If there are other processes, they exchange the communicators' ids and create one more
  /// communicator of all ranks.
  /// Errors: failure (70) that names the communicator, with NCCL's text.
  communicators(const description&, const std::vector<std::unique_ptr<context>>& ranks,
                const peer_edges* edges, const placement&);
  ~communicators();
  communicators(const communicators&) = delete;
  communicators& operator=(const communicators&) = delete;

  /// Ends every active operation, with an error or incomplete, and returns without waiting. The communicators
  /// are destroyed after the graphs that contain their calls. No later communication is possible.
  void abort();

 private:
  struct membership {
    ncclComm_t of;
    context* owner;
    int place;  // the rank's number in this communicator
    ncclWindow_t window;
    void* registration;
  };
  using members = std::vector<membership*>;

  void exchange_ids(const placement&);
  void join_all(context& mine);
  void make(int group_index, const std::vector<std::unique_ptr<context>>& ranks);
  membership& join(context&, const ncclUniqueId&, int members, int place, ncclConfig_t,
                   const std::string& name);
  void register_arenas(const communicator&, const members&, const std::string& name);
  void connect_pair(const members&, int group_index, const std::string& name);
  void release();

  const description& about_;
  std::vector<ncclUniqueId> ids_;  // by communicator; the last: of all ranks
  std::vector<std::unique_ptr<membership>> all_;
  std::shared_ptr<std::atomic<bool>> gone_;  // after abort: true once it has finished
};

}  // namespace rankc::runtime::cuda
