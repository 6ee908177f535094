// SPDX-License-Identifier: Apache-2.0
// Making, destroying and aborting the communicators.
#include "communicators.hpp"

#include "check.hpp"

#include <cstdlib>
#include <string>

namespace rankc::cuda {
namespace {

/// Give the rank its communicator under every role that names it; of a pair, note the other side.
void assign(rank& r, int group_index, ncclComm_t made, int place) {
  for (int role = 0; role < n_roles; ++role)
    if (r.row->communicator[role] == group_index) {
      r.communicators[role] = made;
      r.peers[role] = 1 - place;
    }
}

}  // namespace

communicators::communicators(const description& about, const std::vector<std::unique_ptr<context>>& ranks) {
  // No multicast: NCCL reads this once, before its first communicator.
  setenv("NCCL_NVLS_ENABLE", "0", 1);
  for (std::size_t g = 0; g < about.communicators.size(); ++g) {
    const communicator& group = about.communicators[g];
    const int members = static_cast<int>(group.ranks.size());
    const std::string name = "install: communicator " + std::string(group.name);
    rank& first = ranks[static_cast<std::size_t>(group.ranks.front())]->of();
    ncclUniqueId id;
    check(first, ncclGetUniqueId(&id), nullptr, name + ": ncclGetUniqueId");
    std::vector<ncclComm_t> made(static_cast<std::size_t>(members), nullptr);
    check(first, ncclGroupStart(), nullptr, name + ": ncclGroupStart");
    for (int place = 0; place < members; ++place) {
      context& member = *ranks[static_cast<std::size_t>(group.ranks[static_cast<std::size_t>(place)])];
      check(member.of(), cudaSetDevice(member.device()), "cudaSetDevice");
      ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
      config.maxCTAs = most_blocks;
      check(member.of(),
            ncclCommInitRankConfig(&made[static_cast<std::size_t>(place)], members, id, place, &config),
            nullptr, name + ": ncclCommInitRankConfig");
    }
    check(first, ncclGroupEnd(), nullptr, name + ": ncclGroupEnd");
    for (int place = 0; place < members; ++place) {
      context& member = *ranks[static_cast<std::size_t>(group.ranks[static_cast<std::size_t>(place)])];
      all_.push_back({made[static_cast<std::size_t>(place)], member.device()});
      assign(member.of(), static_cast<int>(g), made[static_cast<std::size_t>(place)], place);
    }
  }
}

void communicators::abort() {
  if (aborted_) return;
  aborted_ = true;
  for (const membership& m : all_) {
    cudaSetDevice(m.device);
    ncclCommAbort(m.of);
  }
}

communicators::~communicators() {
  if (aborted_) return;
  for (const membership& m : all_) {
    cudaSetDevice(m.device);
    ncclCommDestroy(m.of);
  }
}

}  // namespace rankc::cuda
