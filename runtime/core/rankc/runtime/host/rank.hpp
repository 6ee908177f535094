// SPDX-License-Identifier: Apache-2.0
// One rank of a program on the CPU: the context in which generated code computes. Lane 0 is the thread that
// runs the program's text. Every other computing lane has its own thread. Communication lanes are queues of
// the fabric. They have the semantics of NCCL: rendezvous, in order per lane and per communicator, no tags.
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
#include <functional>
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
class injected;  // an injected fault
class retracer;  // finds the first numbers that are not finite

struct rank;

/// A lane, as one of its rank's threads sees it: a stream on which kernels, messages and collectives run.
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
  int computes_on = 0;  // the lane of this thread
  std::vector<lane> all_lanes{{this, 0}};
  step_input input{};       // input of the current step
  const char* action = "";  // the action under way, for error texts
  tracer* trace = nullptr;  // set in a step with timed actions
  std::int64_t steps_done = 0;
  progress_words own_words;
  progress_words* words = &own_words;  // the words that other threads read
  injected* fault = nullptr;
  retracer* origin = nullptr;            // set in a step that runs again
  std::vector<traced>* calls = nullptr;  // set in a step with timed calls
  call_recorder* recorder = nullptr;     // set while calls are compared with the proof and not carried out

  rank() = default;
  rank(const rank&) = delete;  // its lanes refer to it
  rank& operator=(const rank&) = delete;

  template <class T>
  T* at(runtime::at offset) const {
    return reinterpret_cast<T*>(arena + offset.byte);
  }

  const lane& operator[](int lane_index) const { return all_lanes[static_cast<std::size_t>(lane_index)]; }

  /// All lanes of the rank, in the order of its layout: `const auto [compute, reduce] = r.lanes<2>();`
  /// Errors: failure (1) if the rank has another number of lanes.
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

/// Inject a fault: at a call, or into a result. Used in builds with RANKC_INJECT.
void meet_fault(const lane&);
void spoil(const lane&, at result);

/// Called before every call of generated text.
inline void count_call(const lane& on) {
  const rank& r = on;
  r.words->count();
#ifdef RANKC_INJECT
  if (r.fault != nullptr) meet_fault(on);
#endif
}

/// True if the step runs again to find the first numbers that are not finite. retrace_call then runs every
/// call.
inline bool is_retraced(const lane& on) { return on.of->origin != nullptr; }
void retrace_call(const lane&, const void* call, void (*describe)(const void*, operand_list&),
                  void (*enqueue)(const lane&, const void*));

/// True if the step is timed call by call. time_call then runs every call.
inline bool is_timed(const lane& on) { return on.of->calls != nullptr; }
void time_call(const lane&, const void* call, const char* type, void (*enqueue)(const lane&, const void*));

/// Names the action of lane 0 whose calls follow (`1F0`), for errors and traces.
void begin(const lane&, const char* action);

/// Runs an action on another lane that computes, concurrently with lane 0. `work` enqueues on that lane only.
/// Errors: failure (70) if the lane does not compute.
void act(const lane&, const char* action, const std::function<void(const lane&)>& work);

/// Order across lanes. `record` marks the end of the work that the lane holds so far. `wait` makes the lane
/// wait for it.
void record(const lane&, event);
void wait(const lane&, event);
/// Makes later work of `next` wait for the work that `before` holds so far. Does nothing if they are one
/// lane.
void follow(const lane& next, const lane& before);

/// Point to point, on the lane's communicator over `peer`.
void send(const lane&, message, at data, std::size_t bytes);
void receive(const lane&, message, at data, std::size_t bytes);

/// Collectives over the ranks of the lane's communicator of a kind. A lane without such a communicator is an
/// error. On a computing lane a collective returns when its result is complete. Sums run in rank order, so
/// every run has the same bits.
/// Shapes: all_reduce in place, `count` elements. all_gather: `to` is (group, count), this rank contributes
/// `from` (count). reduce_scatter: `from` is (group, count), `to` receives this rank's sum (count).
/// all_to_all, on computing lanes only: all three have the exchange's count * width elements; `to` holds the
/// data to send until all has been received. shift: `to` and `from` have `count` elements, `second_to` and
/// `second_from` `second_count`; the four do not overlap; one exchange.
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

/// Sends slots of tokens to the ranks that hold their experts, and back; and the offsets of the received
/// slots. Only for lanes that compute.
/// Shapes: slots (slots, width), received and scratch (ranks * slab, width); offsets int32 (2, experts) of
/// the rank's own slots; segments int32 (2, experts), with rank r's slab from column r * experts / ranks on;
/// the scratch of segments has the same size.
template <class T>
void to_experts(const lane&, over, message, at received, at scratch, at slots, at offsets,
                const runtime::slot_exchange&);
template <class T>
void from_experts(const lane&, over, message, at slots, at scratch, at received, at offsets,
                  const runtime::slot_exchange&);
void share_offsets(const lane&, over, message, at segments, at scratch, at offsets,
                   const runtime::slot_exchange&);
/// The segments of every member's rows. The members' rows are contiguous, `slab` rows each.
/// Shapes: segments int32 (2, experts / ranks) of a member; all int32 (2, experts), of member r from column r
/// * experts / ranks on.
void gather_offsets(const lane&, over, message, at all, at scratch, at segments,
                    const runtime::slot_exchange&);

/// All-gathers each tensor from the shards that the ranks keep.
/// Shapes: for each range as all_gather.
template <class T>
void gather_shards(const lane& on, over what, message m, at to, at from,
                   std::span<const runtime::shard_range> of) {
  for (const runtime::shard_range& s : of)
    all_gather<T>(on, what, m, to + s.gathered * sizeof(T), from + s.kept * sizeof(T), s.count);
}

/// Reduce-scatters each tensor.
/// Shapes: for each range as reduce_scatter.
template <class T>
void scatter_sums(const lane& on, over what, message m, at to, at from,
                  std::span<const runtime::shard_range> of, std::size_t runtime::shard_range::* kept) {
  for (const runtime::shard_range& s : of)
    reduce_scatter<T>(on, what, m, to + s.*kept * sizeof(T), from + s.gathered * sizeof(T), s.count);
}

/// A generated program for this target: tables, and the training and forward steps of each pipeline
/// coordinate. `train` is null if the program only evaluates.
struct program {
  const description& about;
  void (*const* train)(rank&);
  void (*const* evaluate)(rank&);
};

/// Sets the variables of the process that libraries read when they are loaded. If one was missing, it starts
/// the program again. Call it first in main.
void prepare(char** argv);

/// Installs all ranks, or the rank that `placement` names: allocates the arenas, creates the fabric, and
/// starts one thread for each computing lane of a rank. Later only the first step allocates: the buffers of
/// reductions between processes. If ranks are other processes, all of them call `step`, `evaluate` and
/// `traced_step` in the same order.
std::unique_ptr<engine> install(const program&, const runtime::placement& = {});

}  // namespace rankc::runtime::host
