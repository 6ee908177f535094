// SPDX-License-Identifier: Apache-2.0
// The NCCL communicators of a program. None blocks: a call returns at once, and `check` waits for it.
#pragma once
#include "peer_edges.hpp"
#include <rankc/runtime/placement.hpp>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

namespace rankc::runtime::cuda {

/// Thread blocks that NCCL may take of a GPU for a communicator: at most the first number; for sums that
/// overlap computation at least the second, and for those of shards at most the third. waiting_blocks.hpp
/// checks that all lanes' blocks fit the GPU.
inline constexpr int most_blocks = 16, least_blocks_of_sums = 12, most_blocks_of_shards = 8;

constexpr int most_blocks_of(over what, bool is_waited_for) {
  const bool is_of_shards = what == over::shard || what == over::efsdp;
  return is_of_shards && !is_waited_for ? most_blocks_of_shards : most_blocks;
}

/// Makes all communicators in the description's order, gives each lane its own, and registers the
/// ranks' arenas with them.
class communicators {
 public:
  /// Makes all but those that are `edges`. `ranks` is by rank, null where a rank has another process; then
  /// the processes exchange the communicators' ids, and there is a communicator of all ranks besides.
  /// Errors: failure (70) naming the communicator, with NCCL's text.
  communicators(const description&, const std::vector<std::unique_ptr<context>>& ranks,
                const peer_edges* edges, const placement&);
  ~communicators();
  communicators(const communicators&) = delete;
  communicators& operator=(const communicators&) = delete;

  /// End every operation under way, with an error or half done, and return without waiting for that. The
  /// communicators go once the graphs that hold them have gone. Nothing can be sent afterwards.
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
  std::shared_ptr<std::atomic<bool>> gone_;  // after abort: whether it is done
};

}  // namespace rankc::runtime::cuda
