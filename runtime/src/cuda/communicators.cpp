// SPDX-License-Identifier: Apache-2.0
// Making, destroying and aborting the communicators.
#include "communicators.hpp"

#include "check.hpp"

#include <cstdlib>
#include <string>

namespace rankc::cuda {
namespace {

/// Give the rank its communicator under every role that names it. A pipeline edge has two members: note the
/// other.
void assign(rank& r, int group_index, ncclComm_t made, int place) {
  for (int role = 0; role < n_roles; ++role)
    if (r.row->communicator[role] == group_index) {
      r.communicators[role] = made;
      r.peers[role] = 1 - place;
    }
}

/// Pairs connect at their first message, which would keep a thread inside NCCL until its peer comes. One byte
/// from the sending side to the other, here, and no step has to.
void connect_pair(const std::string& name, context& sender, context& receiver, int group_index) {
  const auto edge_of = [&](rank& r, role one, role other) {
    return r.row->communicator[static_cast<int>(one)] == group_index ? one : other;
  };
  rank &from = sender.of(), &to = receiver.of();
  const auto out = static_cast<int>(edge_of(from, role::to_next, role::to_prev));
  const auto in = static_cast<int>(edge_of(to, role::from_prev, role::from_next));
  check(from, ncclGroupStart(), nullptr, name + ": ncclGroupStart");
  check(from, cudaSetDevice(sender.device()), "cudaSetDevice");
  check(from,
        ncclSend(from.workspace, 1, ncclUint8, from.peers[out], from.communicators[out],
                 from.on(stream::compute)),
        from.communicators[out], name + ": ncclSend");
  check(to, cudaSetDevice(receiver.device()), "cudaSetDevice");
  check(to, ncclRecv(to.workspace, 1, ncclUint8, to.peers[in], to.communicators[in], to.on(stream::compute)),
        to.communicators[in], name + ": ncclRecv");
  check(from, ncclGroupEnd(), nullptr, name + ": ncclGroupEnd");
  check(to, cudaStreamSynchronize(to.on(stream::compute)), "cudaStreamSynchronize");
  check(from, cudaSetDevice(sender.device()), "cudaSetDevice");
  check(from, cudaStreamSynchronize(from.on(stream::compute)), "cudaStreamSynchronize");
}

bool sends_on(const rank& r, int group_index) {
  return r.row->communicator[static_cast<int>(role::to_next)] == group_index ||
         r.row->communicator[static_cast<int>(role::to_prev)] == group_index;
}

}  // namespace

communicators::communicators(const description& about, const std::vector<std::unique_ptr<context>>& ranks) {
  // NCCL reads these once, before its first communicator: no multicast; collectives connect now, not at first
  // use.
  setenv("NCCL_NVLS_ENABLE", "0", 1);
  setenv("NCCL_RUNTIME_CONNECT", "0", 0);
  for (std::size_t g = 0; g < about.communicators.size(); ++g) {
    const communicator& group = about.communicators[g];
    const int members = static_cast<int>(group.ranks.size());
    const auto member_at = [&](int place) -> context& {
      return *ranks[static_cast<std::size_t>(group.ranks[static_cast<std::size_t>(place)])];
    };
    const std::string name = "communicator " + std::string(group.name);
    rank& first = member_at(0).of();
    ncclUniqueId id;
    check(first, ncclGetUniqueId(&id), nullptr, name + ": ncclGetUniqueId");
    std::vector<ncclComm_t> made(static_cast<std::size_t>(members), nullptr);
    check(first, ncclGroupStart(), nullptr, name + ": ncclGroupStart");
    for (int place = 0; place < members; ++place) {
      context& member = member_at(place);
      check(member.of(), cudaSetDevice(member.device()), "cudaSetDevice");
      ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
      config.maxCTAs = most_blocks;
      check(member.of(),
            ncclCommInitRankConfig(&made[static_cast<std::size_t>(place)], members, id, place, &config),
            nullptr, name + ": ncclCommInitRankConfig");
    }
    check(first, ncclGroupEnd(), nullptr, name + ": ncclGroupEnd");
    for (int place = 0; place < members; ++place) {
      context& member = member_at(place);
      all_.push_back({made[static_cast<std::size_t>(place)], member.device()});
      assign(member.of(), static_cast<int>(g), made[static_cast<std::size_t>(place)], place);
    }
    for (int place = 0; place < members; ++place) {
      context& member = member_at(place);
      if (!sends_on(member.of(), static_cast<int>(g))) continue;
      connect_pair(name, member, member_at(1 - place), static_cast<int>(g));
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
