// SPDX-License-Identifier: Apache-2.0
// One rank of a program on the CPU: the context that generated code computes in. Lane 0 is the thread that
// runs the program's text; every other lane that computes has a thread of its own, and those that communicate
// are queues of the fabric, with the semantics of NCCL: rendezvous, in order per lane and per communicator,
// no tags.
#pragma once
#include <rankc/runtime/engine.hpp>
#include <rankc/runtime/head_exchange.hpp>
#include <rankc/runtime/placement.hpp>
#include <rankc/runtime/program.hpp>
#include <rankc/runtime/progress.hpp>
#include <rankc/runtime/slot_exchange.hpp>
#include <rankc/contract/targets.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace rankc::runtime {
struct operand_list;
class call_recorder;
}  // namespace rankc::runtime

namespace rankc::runtime::host {

class fabric;    // carries messages between the ranks of one process
class tracer;    // the times of a step
class injected;  // a fault on purpose
class retracer;  // where numbers begin not to be finite

struct rank;

/// A lane, as one of its rank's threads sees it: what every kernel, message and collective is put on.
struct lane {
  rank* of = nullptr;
  int index = 0;  // in the rank's layout

  operator rank&() const { return *of; }
  const char* name() const;
  int index_in(over axis) const;  // this rank's coordinate
  template <class T>
  T* at(runtime::at offset) const;
};

/// Context of one rank, as one of its threads sees it.
struct rank {
  static constexpr bool is_on_host = true;
  const description* about = nullptr;
  const rank_row* row = nullptr;
  const layout* where = nullptr;
  int index = 0;
  std::byte* arena = nullptr;
  fabric* wires = nullptr;
  int computes_on = 0;  // the lane whose thread sees this
  std::vector<lane> all_lanes{{this, 0}};
  step_input input{};       // of the current step
  const char* action = "";  // the action under way, for error texts
  tracer* trace = nullptr;  // of a timed step; null in all others
  std::int64_t steps_done = 0;
  progress_words own_words;
  progress_words* words = &own_words;  // where others see them
  injected* fault = nullptr;
  retracer* origin = nullptr;            // of a step that is run again; null in all others
  std::vector<traced>* calls = nullptr;  // of a step that is timed call by call; null in all others
  call_recorder* recorder = nullptr;     // where calls are held to the proof and not carried out

  rank() = default;
  rank(const rank&) = delete;  // its lanes refer to it
  rank& operator=(const rank&) = delete;

  template <class T>
  T* at(runtime::at offset) const {
    return reinterpret_cast<T*>(arena + offset.byte);
  }

  const lane& operator[](int lane_index) const { return all_lanes[static_cast<std::size_t>(lane_index)]; }

  /// All lanes of the rank, in the order of its layout: `const auto [compute, reduce] = r.lanes<2>();`
  /// Errors: failure (1) where it has more or fewer.
  template <std::size_t N>
  auto lanes() const {
    if (all_lanes.size() != N)
      throw failure(1, "RC5022: the generated text has {} lanes; the layout of the rank has {}", N,
                    all_lanes.size());
    return [this]<std::size_t... I>(std::index_sequence<I...>) {
      return std::tie(all_lanes[I]...);
    }(std::make_index_sequence<N>());
  }
};

inline int lane::index_in(over axis) const { return of->row->index_in(axis); }
template <class T>
T* lane::at(runtime::at offset) const {
  return of->at<T>(offset);
}

/// A fault on purpose that is due at a call, and one that is a result's; of builds with RANKC_INJECT.
void meet_fault(const lane&);
void spoil(const lane&, at result);

/// Every call of generated text, before it is made.
inline void count_call(const lane& on) {
  const rank& r = on;
  r.words->count();
#ifdef RANKC_INJECT
  if (r.fault != nullptr) meet_fault(on);
#endif
}

/// Every call of a step that is run again, to find where its numbers began not to be finite.
inline bool is_retraced(const lane& on) { return on.of->origin != nullptr; }
void retrace_call(const lane&, const void* call, void (*describe)(const void*, operand_list&),
                  void (*enqueue)(const lane&, const void*));

/// Every call of a step that is timed call by call.
inline bool is_timed(const lane& on) { return on.of->calls != nullptr; }
void time_call(const lane&, const void* call, const char* type, void (*enqueue)(const lane&, const void*));

/// Name the action of lane 0 whose lines follow (`1F0`), for errors and traces.
void begin(const lane&, const char* action);

/// Run an action on another lane that computes, next to what lane 0 does: `work` sees that lane, and puts
/// nothing on others.
/// Errors: failure (70) where the lane does not compute.
void act(const lane&, const char* action, void (*work)(const lane&));

/// Order across lanes: `record` marks the end of what the lane holds so far, `wait` holds the lane until
/// then.
void record(const lane&, event);
void wait(const lane&, event);
/// What is put on `next` from here on waits for what `before` holds so far; nothing, where they are one lane.
void follow(const lane& next, const lane& before);

/// Point to point, on the lane's communicator over `peer`.
void send(const lane&, message, at data, std::size_t bytes);
void receive(const lane&, message, at data, std::size_t bytes);

/// Collectives over the ranks of the lane's communicator of a kind. One that the lane does not have is
/// refused. On a lane that computes they return when the result is there. Sums run in rank order: same bits
/// every time.
/// Shapes: all_reduce in place, `count` elements. all_gather: `to` is (group, count), this rank contributes
///         `from` (count). reduce_scatter: `from` is (group, count), `to` receives this rank's sum (count).
///         all_to_all: all three are of the exchange's count * width; what is sent lies in `to` until all is
///         there. On lanes that compute alone. shift: to and from have `count` elements, second_to and
///         second_from `second_count`; the four lie apart; one exchange.
template <class T>
void all_reduce(const lane&, over, message, at data, std::size_t count, reduction = reduction::sum);
template <class T>
void all_gather(const lane&, over, message, at to, at from, std::size_t count);
template <class T>
void reduce_scatter(const lane&, over, message, at to, at from, std::size_t count);
template <class T>
void all_to_all(const lane&, over, message, at to, at scratch, at from, const runtime::head_exchange&);

template <class T>
void shift(const lane&, over, message, at to, at second_to, at from, at second_from, std::size_t count,
           std::size_t second_count, ring_way);

/// Slots of tokens to the ranks that have their experts, and back; and the offsets of what is received. On
/// lanes that compute.
/// Shapes: slots (slots, width), received and scratch (ranks * slab, width); offsets int32 (2, experts),
/// those of the rank's own
///         slots; segments int32 (2, experts), of rank r's slab from column r * experts / ranks on; their
///         scratch is as large.
template <class T>
void to_experts(const lane&, over, message, at received, at scratch, at slots, at offsets,
                const runtime::slot_exchange&);
template <class T>
void from_experts(const lane&, over, message, at slots, at scratch, at received, at offsets,
                  const runtime::slot_exchange&);
void share_offsets(const lane&, over, message, at segments, at scratch, at offsets,
                   const runtime::slot_exchange&);
/// The segments of every member's rows, which lie in line, `slab` of each.
/// Shapes: segments int32 (2, experts / ranks) of a member; all int32 (2, experts), of member r from column r
/// * experts / ranks on.
void gather_offsets(const lane&, over, message, at all, at scratch, at segments,
                    const runtime::slot_exchange&);

/// Of each tensor all that the ranks keep. Shapes: for each range as all_gather.
template <class T>
void gather_shards(const lane& on, over what, message m, at to, at from,
                   std::span<const runtime::shard_range> of) {
  for (const runtime::shard_range& s : of)
    all_gather<T>(on, what, m, to + s.gathered * sizeof(T), from + s.kept * sizeof(T), s.count);
}

/// Of each tensor the sum, dealt out. Shapes: for each range as reduce_scatter.
template <class T>
void scatter_sums(const lane& on, over what, message m, at to, at from,
                  std::span<const runtime::shard_range> of, std::size_t runtime::shard_range::* kept) {
  for (const runtime::shard_range& s : of)
    reduce_scatter<T>(on, what, m, to + s.*kept * sizeof(T), from + s.gathered * sizeof(T), s.count);
}

/// A generated program for this target: tables, and per pipeline coordinate its training and forward steps.
/// `train` is null where the program has forwards alone.
struct program {
  const description& about;
  void (*const* train)(rank&);
  void (*const* evaluate)(rank&);
};

/// Call first in main: makes the settings of the process that libraries read when they are loaded, and starts
/// the program again where one was missing.
void prepare(char** argv);

/// Allocate the arenas of all ranks, or of the one that `placement` names, create the fabric and start the
/// threads: one for each lane of a rank that computes. Nothing is created after this, but for memory of sums
/// between processes, in the first step. Where ranks are other processes, all of them call `step`, `evaluate`
/// and `traced_step` in the same order.
std::unique_ptr<engine> install(const program&, const runtime::placement& = {});

}  // namespace rankc::runtime::host
