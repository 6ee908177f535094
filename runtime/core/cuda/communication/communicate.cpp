// SPDX-License-Identifier: Apache-2.0
// The calls of lanes, events and NCCL in generated code. An error names the plan's message of the call.
#include "../device/check.hpp"
#include "exchange.hpp"
#include "../progress/marks.hpp"
#include "nccl_calls.hpp"
#include "own_shards.hpp"
#include "../progress/trace.hpp"
#include "peer_edges.hpp"
#include "peer_sums.hpp"
#include "rounded_parts.hpp"
#include "slots.hpp"

#include <rankc/runtime/call_recorder.hpp>
#include <rankc/contract/device_memory.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

namespace rankc::runtime::cuda {

const lane_link& link_of(const lane& on, over what, message m) {
  for (const lane_link& k : on.links)
    if (k.over == what) return k;
  fail(on, "RC5119: \"{}\": lane {} has no communicator over {}", m.name, on.name(),
       over_names[static_cast<int>(what)]);
}

namespace {

/// In a pair, the first rank sends and the second receives.
const lane_link& edge_of(const lane& on, message m, int place) {
  const lane_link& k = link_of(on, over::peer, m);
  if (k.place != place) fail(on, "RC5059: \"{}\" has the wrong direction for lane {}", m.name, on.name());
  return k;
}

/// NCCL's kernels for symmetric windows (seen in 2.28.3) give wrong results if a piece does not start at a
/// multiple of 4 bytes, which happens with bf16. Broadcasts, and sums that scale by one, do not use these
/// kernels.
template <class T>
bool is_misaligned(const T* to, const T* from, std::size_t count) {
  const auto bits =
      reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from) | (count * sizeof(T));
  return bits % 4 != 0;
}

ncclRedOp_t sum_for(const lane_link& k, bool misaligned) { return misaligned ? k.scaled_sum : ncclSum; }

}  // namespace

void begin(const lane& on, const char* action) {
  if (call_recorder* const to = recorder_of(on)) return to->begin(action);
  begin_action(on, action);
}

void act(const lane& on, const char* action, const std::function<void(const lane&)>& work) {
  if (call_recorder* const to = recorder_of(on)) return to->act(on, action, work);
  if (on.index == 0 || !on.computes())
    fail(on, "RC5061: {} cannot run on lane {}; an action runs on a lane that computes, but not on lane 0",
         action, on.name());
  rank& r = on;
  const char* before = std::exchange(r.action, action);
  const stamped_action times(on, action);
  work(on);
  r.action = before;
}

void record(const lane& on, event e) {
  if (call_recorder* const to = recorder_of(on)) return to->record(on.index, e);
  if (on.of->place != nullptr) on.of->place->record(on, e);
  check(on, cudaEventRecord(on.of->events[static_cast<std::size_t>(e.index)], on.stream), "cudaEventRecord");
}

void wait(const lane& on, event e) {
  if (call_recorder* const to = recorder_of(on)) return to->wait(on.index, e);
  if (on.of->place != nullptr) on.of->place->wait(on, e);
  const stamped times(on, tracer::what::wait, "");
  check(on, cudaStreamWaitEvent(on.stream, on.of->events[static_cast<std::size_t>(e.index)], 0),
        "cudaStreamWaitEvent");
}

void follow(const lane& next, const lane& before) {
  if (next.index == before.index) return;
  if (call_recorder* const to = recorder_of(next)) return to->follow(next.index, before.index);
  const stamped times(next, tracer::what::wait, "");
  check(next, cudaEventRecord(before.reached, before.stream), "cudaEventRecord");
  check(next, cudaStreamWaitEvent(next.stream, before.reached, 0), "cudaStreamWaitEvent");
}

void send(const lane& on, message m, at data, std::size_t bytes) {
  const lane_link& k = edge_of(on, m, 0);
  const stamped times(on, tracer::what::alone, m.name);
  const marked place(on, k, m.name);
  if (k.edge != nullptr) return send_to_peer(on, *k.edge, m, on.at<std::byte>(data), bytes);
  if (on.of->alone) return;
  check(on, ncclSend(on.at<std::byte>(data), bytes, ncclUint8, 1, k.nccl, on.stream), k.nccl,
        std::string(m.name) + ": ncclSend");
}

void receive(const lane& on, message m, at data, std::size_t bytes) {
  const lane_link& k = edge_of(on, m, 1);
  const stamped times(on, tracer::what::alone, m.name);
  const marked place(on, k, m.name);
  if (k.edge != nullptr) return receive_from_peer(on, *k.edge, m, on.at<std::byte>(data));
  if (on.of->alone) return;
  check(on, ncclRecv(on.at<std::byte>(data), bytes, ncclUint8, 0, k.nccl, on.stream), k.nccl,
        std::string(m.name) + ": ncclRecv");
}

template <class T>
void all_reduce(const lane& on, over what, message m, at data, std::size_t count, reduction how) {
  const lane_link& k = link_of(on, what, m);
  const stamped times(on, tracer::what::alone, m.name);
  const marked place(on, k, m.name);
  if (on.of->alone) return;
  T* values = on.at<T>(data);
  if constexpr (!std::is_same_v<T, double>)
    if (how == reduction::sum && reads_peers(on, k)) return sum_among_peers(on, *k.mapped, values, count);
  const ncclRedOp_t op = how == reduction::max ? ncclMax : sum_for(k, is_misaligned(values, values, count));
  check(on, ncclAllReduce(values, values, count, nccl_type<T>, op, k.nccl, on.stream), k.nccl,
        std::string(m.name) + ": ncclAllReduce");
}

namespace {

template <class T>
void gather(const lane& on, const lane_link& k, message m, T* all, const T* own, std::size_t count) {
  const std::string call = std::string(m.name) + ": ncclAllGather";
  if (!is_misaligned(all, own, count)) {
    check(on, ncclAllGather(own, all, count, nccl_type<T>, k.nccl, on.stream), k.nccl, call);
    return;
  }
  for (int i = 0, members = members_of(on, k, m.name); i < members; ++i)
    check(on,
          ncclBroadcast(own, all + static_cast<std::size_t>(i) * count, count, nccl_type<T>, i, k.nccl,
                        on.stream),
          k.nccl, call);
}

}  // namespace

template <class T>
void all_gather(const lane& on, over what, message m, at to, at from, std::size_t count) {
  const lane_link& k = link_of(on, what, m);
  const stamped times(on, tracer::what::alone, m.name);
  const marked place(on, k, m.name);
  if (on.of->alone) return;
  T *all = on.at<T>(to), *own = on.at<T>(from);
  if constexpr (!std::is_same_v<T, double>)
    if (reads_peers(on, k)) return gather_from_peers(on, *k.mapped, all, own, count);
  gather(on, k, m, all, own, count);
}

// Each call is a separate launch, and not part of a group. In a group NCCL 2.28.3 mixes up the pieces of
// several collectives of symmetric windows: of large tensors a tenth arrives wrong. In-place calls need no
// kernel if copy engines work.
template <class T>
void gather_shards(const lane& on, over what, message m, at to, at from,
                   std::span<const runtime::shard_range> of) {
  const lane_link& k = link_of(on, what, m);
  const stamped times(on, tracer::what::alone, m.name);
  const marked place(on, k, m.name);
  if (on.of->alone) return;
  T* const all = on.at<T>(to);
  const auto place_of = [&](const runtime::shard_range& s) {
    return all + s.gathered + static_cast<std::size_t>(k.place) * s.count;
  };
  own_shards next;
  for (const runtime::shard_range& s : of) {
    next.add(place_of(s), on.at<T>(from) + s.kept, s.count * sizeof(T));
    if (next.is_full()) place_own_shards(on, std::exchange(next, {}));
  }
  place_own_shards(on, next);
  for (const runtime::shard_range& s : of) gather(on, k, m, all + s.gathered, place_of(s), s.count);
}

namespace {

template <class T>
void deal_out(const lane& on, const lane_link& k, message m, T* own, const T* all, std::size_t count) {
  if constexpr (!std::is_same_v<T, double>)
    if (reads_peers(on, k)) return sum_of_peers(on, *k.mapped, own, all, count);
  check(on,
        ncclReduceScatter(all, own, count, nccl_type<T>, sum_for(k, is_misaligned(own, all, count)), k.nccl,
                          on.stream),
        k.nccl, std::string(m.name) + ": ncclReduceScatter");
}

}  // namespace

template <class T>
void reduce_scatter(const lane& on, over what, message m, at to, at from, std::size_t count) {
  const lane_link& k = link_of(on, what, m);
  const stamped times(on, tracer::what::alone, m.name);
  const marked place(on, k, m.name);
  if (!on.of->alone) deal_out(on, k, m, on.at<T>(to), on.at<T>(from), count);
}

// Each call is a separate launch, as in gather_shards, and is timed separately.
template <class T>
void scatter_sums(const lane& on, over what, message m, at to, at from,
                  std::span<const runtime::shard_range> of, std::size_t runtime::shard_range::* kept) {
  const lane_link& k = link_of(on, what, m);
  const marked place(on, k, m.name);
  for (const runtime::shard_range& s : of) {
    const stamped times(on, tracer::what::alone, m.name);
    if (!on.of->alone) deal_out(on, k, m, on.at<T>(to) + s.*kept, on.at<T>(from) + s.gathered, s.count);
  }
}

namespace {

/// Copies a rank's own block of `from` to the place of a member's block.
/// Units: bytes.
void keep_block(const lane& on, const lane_link& k, message m, std::byte* to, const std::byte* from,
                std::size_t block, int member) {
  const auto of = [&](auto* blocks, int i) { return blocks + static_cast<std::size_t>(i) * block; };
  check(on, cudaMemcpyAsync(of(to, member), of(from, k.place), block, cudaMemcpyDeviceToDevice, on.stream),
        m.name);
}

/// Sends each member its block of `from`. The rank copies its own block. One group of calls exchanges the
/// others.
/// Units: bytes.
void exchange_blocks(const lane& on, const lane_link& k, message m, std::byte* to, const std::byte* from,
                     std::size_t block, int members) {
  const auto of = [&](auto* blocks, int member) { return blocks + static_cast<std::size_t>(member) * block; };
  keep_block(on, k, m, to, from, block, k.place);
  const std::string call = std::string(m.name) + ": all-to-all";
  check(on, ncclGroupStart(), k.nccl, call);
  for (int member = 0; member < members; ++member) {
    if (member == k.place) continue;
    check(on, ncclSend(of(from, member), block, ncclUint8, member, k.nccl, on.stream), k.nccl, call);
    check(on, ncclRecv(of(to, member), block, ncclUint8, member, k.nccl, on.stream), k.nccl, call);
  }
  check(on, ncclGroupEnd(), k.nccl, call);
}

}  // namespace

template <class T>
void all_to_all(const lane& on, over what, message m, at to, at scratch, at from,
                const runtime::head_exchange& by) {
  const lane_link& k = link_of(on, what, m);
  const stamped times(on, tracer::what::alone, m.name);
  const marked place(on, k, m.name);
  if (on.of->alone) return;
  T *made = on.at<T>(to), *there = on.at<T>(scratch);
  const std::size_t block =
      static_cast<std::size_t>(by.block()) * static_cast<std::size_t>(by.width) * sizeof(T);
  put_into_blocks(on, made, on.at<T>(from), by);
  exchange_blocks(on, k, m, on.at<std::byte>(scratch), on.at<std::byte>(to), block, by.ranks);
  take_from_blocks(on, made, there, by);
}

template <class T>
void shift(const lane& on, over what, message m, at to, at second_to, at from, at second_from,
           std::size_t count, std::size_t second_count, ring_way way) {
  const lane_link& k = link_of(on, what, m);
  const stamped times(on, tracer::what::alone, m.name);
  const marked place(on, k, m.name);
  if (on.of->alone) return;
  const int members = members_of(on, k, m.name), by = way == ring_way::next ? 1 : members - 1;
  const int taker = (k.place + by) % members, giver = (k.place + members - by) % members;
  const std::string call = std::string(m.name) + ": shift";
  check(on, ncclGroupStart(), k.nccl, call);
  for (const auto& [there, here, some] :
       {std::tuple(to, from, count), {second_to, second_from, second_count}}) {
    check(on, ncclSend(on.at<T>(here), some * sizeof(T), ncclUint8, taker, k.nccl, on.stream), k.nccl, call);
    check(on, ncclRecv(on.at<T>(there), some * sizeof(T), ncclUint8, giver, k.nccl, on.stream), k.nccl, call);
  }
  check(on, ncclGroupEnd(), k.nccl, call);
}

template <class T>
void to_experts(const lane& on, over what, message m, at received, at scratch, at slots, at offsets,
                const runtime::slot_exchange& by) {
  const lane_link& k = link_of(on, what, m);
  const stamped times(on, tracer::what::alone, m.name);
  const marked place(on, k, m.name);
  if (on.of->alone) return;
  if (k.mapped != nullptr)
    return send_slots(on, *k.mapped, on.at<T>(received), on.at<T>(slots), on.at<std::int32_t>(offsets), by);
  const std::size_t block =
      static_cast<std::size_t>(by.slab) * static_cast<std::size_t>(by.width) * sizeof(T);
  put_into_slabs(on, on.at<T>(scratch), on.at<T>(slots), on.at<std::int32_t>(offsets), by);
  exchange_blocks(on, k, m, on.at<std::byte>(received), on.at<std::byte>(scratch), block, by.ranks);
}

template <class T>
void from_experts(const lane& on, over what, message m, at slots, at scratch, at received, at offsets,
                  const runtime::slot_exchange& by) {
  const lane_link& k = link_of(on, what, m);
  const stamped times(on, tracer::what::alone, m.name);
  const marked place(on, k, m.name);
  if (on.of->alone) return;
  if (k.mapped != nullptr)
    return fetch_slots(on, *k.mapped, on.at<T>(slots), on.at<T>(received), on.at<std::int32_t>(offsets), by);
  const std::size_t block =
      static_cast<std::size_t>(by.slab) * static_cast<std::size_t>(by.width) * sizeof(T);
  exchange_blocks(on, k, m, on.at<std::byte>(scratch), on.at<std::byte>(received), block, by.ranks);
  take_from_slabs(on, on.at<T>(slots), on.at<T>(scratch), on.at<std::int32_t>(offsets), by);
}

void share_offsets(const lane& on, over what, message m, at segments, at scratch, at offsets,
                   const runtime::slot_exchange& by) {
  const lane_link& k = link_of(on, what, m);
  const stamped times(on, tracer::what::alone, m.name);
  const marked place(on, k, m.name);
  const std::size_t block = 2 * static_cast<std::size_t>(by.experts_of_rank()) * sizeof(std::int32_t);
  std::int32_t* made = on.at<std::int32_t>(segments);
  put_offsets(on, made, on.at<std::int32_t>(offsets), by);
  // Without the other ranks, the rank's own offsets stand in for everyone's, because kernels access the rows
  // that offsets name.
  if (on.of->alone)
    for (int member = 0; member < by.ranks; ++member)
      keep_block(on, k, m, on.at<std::byte>(scratch), on.at<std::byte>(segments), block, member);
  else exchange_blocks(on, k, m, on.at<std::byte>(scratch), on.at<std::byte>(segments), block, by.ranks);
  take_offsets(on, made, on.at<std::int32_t>(scratch), by);
}

void gather_offsets(const lane& on, over what, message m, at all, at scratch, at segments,
                    const runtime::slot_exchange& by) {
  const lane_link& k = link_of(on, what, m);
  const stamped times(on, tracer::what::alone, m.name);
  const marked place(on, k, m.name);
  const std::size_t count = 2 * static_cast<std::size_t>(by.experts_of_rank()),
                    block = count * sizeof(std::int32_t);
  std::byte* const blocks = on.at<std::byte>(scratch);
  const std::byte* const own = on.at<std::byte>(segments);
  // Without the other ranks, the rank's own offsets stand in, as in share_offsets.
  if (on.of->alone)
    for (int member = 0; member < by.ranks; ++member)
      check(on,
            cudaMemcpyAsync(blocks + static_cast<std::size_t>(member) * block, own, block,
                            cudaMemcpyDeviceToDevice, on.stream),
            m.name);
  else
    check(on, ncclAllGather(own, blocks, count, ncclInt32, k.nccl, on.stream), k.nccl,
          std::string(m.name) + ": ncclAllGather");
  take_offsets(on, on.at<std::int32_t>(all), on.at<std::int32_t>(scratch), by);
}

namespace {

constexpr std::size_t most_rounded = rounded_bytes / sizeof(bf16);

/// The lane's rounding buffer.
bf16* memory_to_round(const lane& on, message m) {
  if (on.rounded == nullptr) fail(on, "RC5120: \"{}\": lane {} has no memory to round in", m.name, on.name());
  return on.rounded;
}

}  // namespace

// Works in pieces of the size of the rounding buffer.
void all_reduce_in_bf16(const lane& on, over what, message m, at data, std::size_t count) {
  const lane_link& k = link_of(on, what, m);
  const stamped times(on, tracer::what::alone, m.name);
  const marked place(on, k, m.name);
  if (on.of->alone) return;
  bf16* const rounded = memory_to_round(on, m);
  for (std::size_t first = 0; first < count; first += most_rounded) {
    float* const values = on.at<float>(data) + first;
    rounded_parts sent{.members = 1};
    sent.add(values, values, 0, std::min(most_rounded, count - first));
    round_parts(on, rounded, sent);
    check(on, ncclAllReduce(rounded, rounded, sent.length, ncclBfloat16, ncclSum, k.nccl, on.stream), k.nccl,
          std::string(m.name) + ": ncclAllReduce");
    widen_parts(on, rounded, sent);
  }
}

// A small kernel on a lane that overlaps computation waits for each of its large kernels. So all tensors that
// fit into the rounding buffer are one call.
void scatter_sums_in_bf16(const lane& on, over what, message m, at to, at from,
                          std::span<const runtime::shard_range> of,
                          std::size_t runtime::shard_range::* kept) {
  const lane_link& k = link_of(on, what, m);
  const stamped times(on, tracer::what::alone, m.name);
  const marked place(on, k, m.name);
  if (on.of->alone) return;
  bf16* const rounded = memory_to_round(on, m);
  const rounded_parts nothing{.members = static_cast<std::size_t>(members_of(on, k, m.name))};
  const std::size_t most = most_rounded / nothing.members / rounded_parts::aligned * rounded_parts::aligned;
  rounded_parts next = nothing;
  const auto send_next = [&] {
    round_parts(on, rounded, next);
    bf16* const own = rounded + static_cast<std::size_t>(k.place) * next.length;
    check(on, ncclReduceScatter(rounded, own, next.length, ncclBfloat16, ncclSum, k.nccl, on.stream), k.nccl,
          std::string(m.name) + ": ncclReduceScatter");
    widen_parts(on, own, next);
    next = nothing;
  };
  for (const runtime::shard_range& s : of)
    for (std::size_t first = 0, now = 0; first < s.count; first += now) {
      if (next.is_full() || next.length == most) send_next();
      now = std::min(most - next.length, s.count - first);
      next.add(on.at<float>(to) + s.*kept + first, on.at<float>(from) + s.gathered + first, s.count, now);
    }
  if (next.many > 0) send_next();
}

template void all_reduce<float>(const lane&, over, message, at, std::size_t, reduction);
template void all_reduce<double>(const lane&, over, message, at, std::size_t, reduction);
template void all_reduce<bf16>(const lane&, over, message, at, std::size_t, reduction);
template void all_gather<float>(const lane&, over, message, at, at, std::size_t);
template void all_gather<double>(const lane&, over, message, at, at, std::size_t);
template void all_gather<bf16>(const lane&, over, message, at, at, std::size_t);
template void gather_shards<float>(const lane&, over, message, at, at, std::span<const runtime::shard_range>);
template void gather_shards<double>(const lane&, over, message, at, at,
                                    std::span<const runtime::shard_range>);
template void gather_shards<bf16>(const lane&, over, message, at, at, std::span<const runtime::shard_range>);
template void reduce_scatter<float>(const lane&, over, message, at, at, std::size_t);
template void reduce_scatter<double>(const lane&, over, message, at, at, std::size_t);
template void reduce_scatter<bf16>(const lane&, over, message, at, at, std::size_t);
template void scatter_sums<float>(const lane&, over, message, at, at, std::span<const runtime::shard_range>,
                                  std::size_t runtime::shard_range::*);
template void scatter_sums<double>(const lane&, over, message, at, at, std::span<const runtime::shard_range>,
                                   std::size_t runtime::shard_range::*);
template void scatter_sums<bf16>(const lane&, over, message, at, at, std::span<const runtime::shard_range>,
                                 std::size_t runtime::shard_range::*);
template void all_to_all<float>(const lane&, over, message, at, at, at, const runtime::head_exchange&);
template void all_to_all<bf16>(const lane&, over, message, at, at, at, const runtime::head_exchange&);
template decltype(shift<float>) shift<float>;
template decltype(shift<bf16>) shift<bf16>;
template void to_experts<float>(const lane&, over, message, at, at, at, at, const runtime::slot_exchange&);
template void to_experts<bf16>(const lane&, over, message, at, at, at, at, const runtime::slot_exchange&);
template void from_experts<float>(const lane&, over, message, at, at, at, at, const runtime::slot_exchange&);
template void from_experts<bf16>(const lane&, over, message, at, at, at, at, const runtime::slot_exchange&);

}  // namespace rankc::runtime::cuda
