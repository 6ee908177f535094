// SPDX-License-Identifier: Apache-2.0
// Streams, events and NCCL as generated code calls them. Each call names its plan's message in an error.
#include "check.hpp"
#include "trace.hpp"
#include "peer_edges.hpp"

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

namespace rankc::cuda {
namespace {

template <class T>
constexpr ncclDataType_t type_of = std::is_same_v<T, float>    ? ncclFloat32
                                   : std::is_same_v<T, double> ? ncclFloat64
                                                               : ncclBfloat16;

role role_of(rank& r, stream direction, message m) {
  switch (direction) {
    case stream::to_next:
      return role::to_next;
    case stream::from_prev:
      return role::from_prev;
    case stream::to_prev:
      return role::to_prev;
    case stream::from_next:
      return role::from_next;
    case stream::compute:
    case stream::beside:
    case stream::reduce:
      break;
  }
  fail(r, std::string(m.name) +
              ": point-to-point needs a pipeline stream: to_next, from_prev, to_prev, from_next");
}

ncclComm_t communicator_of(rank& r, role group, message m) {
  ncclComm_t communicator = r.communicators[static_cast<int>(group)];
  if (communicator == nullptr)
    fail(r, std::string(m.name) + ": the rank has no communicator for role " +
                std::to_string(static_cast<int>(group)) + "; the plan gives it index -1");
  return communicator;
}

/// NCCL's kernels for symmetric windows (seen in 2.28.3) go wrong where a piece does not begin at a multiple
/// of 4 bytes, which can be with bf16. Broadcasts and sums that scale by one are not done by these kernels.
template <class T>
bool awkward(const T* to, const T* from, std::size_t count) {
  const auto bits =
      reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from) | (count * sizeof(T));
  return bits % 4 != 0;
}

/// The rank as an action on stream::beside sees it: all that kernels and collectives of one stream use one after
/// another is that stream's own. Descriptors of products are shared; only this thread reads and writes them.
rank seen_beside(const rank& r) {
  rank other = r;
  const auto exchange = [](auto& list, auto one, auto with) {
    std::swap(list[static_cast<int>(one)], list[static_cast<int>(with)]);
  };
  exchange(other.streams, stream::compute, stream::beside);
  exchange(other.communicators, role::tp, role::tp_beside);
  exchange(other.scaled_sums, role::tp, role::tp_beside);
  other.workspace = std::exchange(other.workspace_beside, nullptr);
  other.attention_graphs = std::exchange(other.attention_graphs_beside, nullptr);
  other.trace = nullptr;  // the action is timed as a whole
  return other;
}

ncclRedOp_t sum_for(rank& r, role group, bool is_awkward) {
  return is_awkward ? r.scaled_sums[static_cast<int>(group)] : ncclSum;
}

}  // namespace

void begin(rank& r, const char* action) { begin_action(r, action); }

void beside(rank& r, const char* action, void (*work)(rank&)) {
  if (r.workspace_beside == nullptr)
    fail(r, std::string(action) + " is to run on stream beside, and the rank's layout says that nothing does");
  rank other = seen_beside(r);
  other.action = action;
  const stamped_action times(r, stream::beside, action);
  work(other);
}

void record(rank& r, stream s, event e) {
  check(r, cudaEventRecord(r.events[static_cast<std::size_t>(e.index)], r.on(s)), "cudaEventRecord");
}

void wait(rank& r, stream s, event e) {
  const stamped times(r, tracer::what::wait, s, "");
  check(r, cudaStreamWaitEvent(r.on(s), r.events[static_cast<std::size_t>(e.index)], 0),
        "cudaStreamWaitEvent");
}

void send(rank& r, stream direction, message m, at data, std::size_t bytes) {
  const role edge = role_of(r, direction, m);
  const stamped times(r, tracer::what::alone, direction, m.name);
  if (const peer_edge* e = r.edges[static_cast<int>(edge)]) {
    if (!r.alone) store_to_peer(r, r.on(direction), *e, m.name, r.at<std::byte>(data), bytes);
    return;
  }
  ncclComm_t communicator = communicator_of(r, edge, m);
  if (r.alone) return;
  check(r,
        ncclSend(r.at<std::byte>(data), bytes, ncclUint8, r.peers[static_cast<int>(edge)], communicator,
                 r.on(direction)),
        communicator, std::string(m.name) + ": ncclSend");
}

void receive(rank& r, stream direction, message m, at data, std::size_t bytes) {
  const role edge = role_of(r, direction, m);
  const stamped times(r, tracer::what::alone, direction, m.name);
  if (const peer_edge* e = r.edges[static_cast<int>(edge)]) {
    if (!r.alone) receive_from_peer(r, r.on(direction), *e, m.name, r.at<std::byte>(data));
    return;
  }
  ncclComm_t communicator = communicator_of(r, edge, m);
  if (r.alone) return;
  check(r,
        ncclRecv(r.at<std::byte>(data), bytes, ncclUint8, r.peers[static_cast<int>(edge)], communicator,
                 r.on(direction)),
        communicator, std::string(m.name) + ": ncclRecv");
}

template <class T>
void all_reduce(rank& r, stream s, role group, message m, at data, std::size_t count, reduction how) {
  ncclComm_t communicator = communicator_of(r, group, m);
  const stamped times(r, tracer::what::alone, s, m.name);
  if (r.alone) return;
  T* values = r.at<T>(data);
  const ncclRedOp_t op = how == reduction::max ? ncclMax : sum_for(r, group, awkward(values, values, count));
  check(r, ncclAllReduce(values, values, count, type_of<T>, op, communicator, r.on(s)), communicator,
        std::string(m.name) + ": ncclAllReduce");
}

template <class T>
void all_gather(rank& r, stream s, role group, message m, at to, at from, std::size_t count) {
  ncclComm_t communicator = communicator_of(r, group, m);
  const stamped times(r, tracer::what::alone, s, m.name);
  if (r.alone) return;
  const T* mine = r.at<T>(from);
  T* all = r.at<T>(to);
  const std::string call = std::string(m.name) + ": ncclAllGather";
  if (!awkward(all, mine, count)) {
    check(r, ncclAllGather(mine, all, count, type_of<T>, communicator, r.on(s)), communicator, call);
    return;
  }
  int members = 0;
  check(r, ncclCommCount(communicator, &members), communicator, call);
  for (int i = 0; i < members; ++i)
    check(r,
          ncclBroadcast(mine, all + static_cast<std::size_t>(i) * count, count, type_of<T>, i, communicator,
                        r.on(s)),
          communicator, call);
}

template <class T>
void reduce_scatter(rank& r, stream s, role group, message m, at to, at from, std::size_t count) {
  ncclComm_t communicator = communicator_of(r, group, m);
  const stamped times(r, tracer::what::alone, s, m.name);
  if (r.alone) return;
  T* mine = r.at<T>(to);
  const T* all = r.at<T>(from);
  check(r,
        ncclReduceScatter(all, mine, count, type_of<T>, sum_for(r, group, awkward(mine, all, count)),
                          communicator, r.on(s)),
        communicator, std::string(m.name) + ": ncclReduceScatter");
}

template void all_reduce<float>(rank&, stream, role, message, at, std::size_t, reduction);
template void all_reduce<double>(rank&, stream, role, message, at, std::size_t, reduction);
template void all_reduce<bf16>(rank&, stream, role, message, at, std::size_t, reduction);
template void all_gather<float>(rank&, stream, role, message, at, at, std::size_t);
template void all_gather<double>(rank&, stream, role, message, at, at, std::size_t);
template void all_gather<bf16>(rank&, stream, role, message, at, at, std::size_t);
template void reduce_scatter<float>(rank&, stream, role, message, at, at, std::size_t);
template void reduce_scatter<double>(rank&, stream, role, message, at, at, std::size_t);
template void reduce_scatter<bf16>(rank&, stream, role, message, at, at, std::size_t);

}  // namespace rankc::cuda
