// SPDX-License-Identifier: Apache-2.0
// One rank of a program on a GPU: the context that generated code enqueues into. The interface is the host's
// (host/rank.hpp), so that the text for both targets reads alike; here a lane is a stream, and every call
// puts work on it and returns at once, which is what lets a whole step become one CUDA graph.
#pragma once
#include <rankc/runtime/engine.hpp>
#include <rankc/runtime/head_exchange.hpp>
#include <rankc/runtime/slot_exchange.hpp>
#include <rankc/contract/targets.hpp>
#include <rankc/runtime/placement.hpp>
#include <rankc/runtime/program.hpp>
#include <rankc/runtime/update_rules.hpp>

#include <cublasLt.h>
#include <cuda_bf16.h>
#include <cuda_runtime_api.h>
#include <nccl.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace rankc::runtime {
class call_recorder;
}

namespace rankc::runtime::cuda {

/// The 16-bit type of generated bf16 code: activations and the working copy of the weights.
using bf16 = __nv_bfloat16;

/// It lies in device memory at a fixed address, so that learning rate and step number change without a new
/// capture.
using hyperparameters = update_factors<float>;

struct linear_plans;     // cuBLASLt plans by shape (linear_plans.hpp)
struct product_machine;  // what their algorithms are the fastest on (product_choices.hpp)
class product_choices;   // their algorithms, of all ranks of a process
struct attention_plans;  // cuDNN plans by shape (attention_cudnn.cpp)
struct peer_edge;        // a pipeline edge by copy engines (peer_edges.hpp)
struct peer_group;       // ranks whose GPUs map each other (peer_groups.hpp)
class tracer;            // the times of a step (trace.hpp)
class marks;             // where its lanes are (marks.hpp)
class injected;          // a fault on purpose (injected.hpp)

struct rank;

/// A communicator of a lane, or the edge that does its work.
struct lane_link {
  runtime::over over;
  int communicator;  // index in the description
  ncclComm_t nccl = nullptr;
  ncclRedOp_t scaled_sum{};            // bf16 sums, each term times one (communicate.cpp)
  int place = 0;                       // the rank's number in the communicator; of a pair, 0 sends to 1
  peer_edge* edge = nullptr;           // null where NCCL carries the messages
  const peer_group* mapped = nullptr;  // null where NCCL has all to do
};

/// A lane: what every kernel, message and collective is put on.
struct lane {
  rank* of = nullptr;
  int index = 0;  // in the rank's layout
  cudaStream_t stream = nullptr;
  std::vector<lane_link> links = {};
  // Of lanes that compute, each its own, for its kernels follow one another:
  std::byte* workspace = nullptr;  // device scratch
  std::size_t workspace_bytes = 0;
  linear_plans* plans = nullptr;
  attention_plans* attention_graphs = nullptr;
  // Of those over tp:
  lane* copies = nullptr;  // what copy engines do beside it
  // Of lanes that send gradients in bf16:
  bf16* rounded = nullptr;        // device memory of rounded_bytes
  cudaEvent_t reached = nullptr;  // what others follow

  operator rank&() const { return *of; }
  bool computes() const { return workspace != nullptr; }
  const char* name() const;
  int index_in(over axis) const;  // this rank's coordinate
  template <class T>
  T* at(runtime::at offset) const;
};

/// Context of one rank. `context` (context.hpp) owns what is pointed to.
struct rank {
  static constexpr bool is_on_host = false;
  const description* about = nullptr;
  const rank_row* row = nullptr;
  const layout* where = nullptr;
  int index = 0;
  std::byte* arena = nullptr;  // device memory
  std::vector<lane> all_lanes;
  std::vector<cudaEvent_t> events;
  ncclComm_t world = nullptr;  // all ranks; only where each has a process of its own
  cublasLtHandle_t blas = nullptr;
  const product_machine* machine = nullptr;
  product_choices* choices = nullptr;
  const hyperparameters* input = nullptr;  // device memory; of the current step
  const char* action = "";                 // the action under way, for error texts
  std::int64_t steps_done = 0;             // -1: install is trying the step out
  tracer* trace = nullptr;                 // where a timed step is captured; null in all others
  tracer* calls = nullptr;                 // where one is that is timed call by call
  call_recorder* recorder = nullptr;       // where calls are held to the proof and not carried out
  marks* place = nullptr;                  // null where nobody asks
  injected* fault = nullptr;
  bool evaluates = false;             // what is enqueued is a forward step alone
  bool alone = false;                 // warm-up without the other ranks: nothing is sent or received
  volatile unsigned* stop = nullptr;  // pinned; not 0 once a rank has failed: nobody waits any longer

  rank() = default;
  rank(const rank&) = delete;  // its lanes refer to it
  rank& operator=(const rank&) = delete;

  template <class T>
  T* at(runtime::at offset) const {
    return reinterpret_cast<T*>(arena + offset.byte);
  }
  /// Where a communicator of the description is among the lanes; null: nowhere.
  lane_link* find_link(int communicator) {
    for (lane& on : all_lanes)
      for (lane_link& k : on.links)
        if (k.communicator == communicator) return &k;
    return nullptr;
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

inline const char* lane::name() const { return of->where->lanes[static_cast<std::size_t>(index)].name; }
inline int lane::index_in(over axis) const { return of->row->index_in(axis); }
template <class T>
T* lane::at(runtime::at offset) const {
  return of->at<T>(offset);
}

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
/// Errors: failure (70) where the lane has none of that direction, or NCCL refuses.
void send(const lane&, message, at data, std::size_t bytes);
void receive(const lane&, message, at data, std::size_t bytes);

/// Collectives over the ranks of the lane's communicator of a kind; T is float, double or bf16.
/// Shapes: all_reduce in place, `count` elements. all_gather: `to` is (group, count), this rank contributes
///         `from` (count). reduce_scatter: `from` is (group, count), `to` receives this rank's sum (count).
///         all_to_all: all three are of the exchange's count * width; what is sent lies in `to` until all is
///         there.
/// Errors: failure (70) where the lane has no such communicator, or NCCL refuses.
template <class T>
void all_reduce(const lane&, over, message, at data, std::size_t count, reduction = reduction::sum);
template <class T>
void all_gather(const lane&, over, message, at to, at from, std::size_t count);
template <class T>
void reduce_scatter(const lane&, over, message, at to, at from, std::size_t count);
template <class T>
void all_to_all(const lane&, over, message, at to, at scratch, at from, const runtime::head_exchange&);
/// Receives two tensors, of `count` and `second_count` elements, from the member before or from the one
/// behind; one group of calls.
template <class T>
void shift(const lane&, over, message, at to, at second_to, at from, at second_from, std::size_t count,
           std::size_t second_count, ring_way);

/// Slots of tokens to the ranks that have their experts, and back; and the offsets of what is received.
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

/// Of each tensor all that the ranks keep, and the sum, dealt out; which the guard sees as one.
/// Shapes: for each range as all_gather, and as reduce_scatter.
template <class T>
void gather_shards(const lane&, over, message, at to, at from, std::span<const runtime::shard_range>);
template <class T>
void scatter_sums(const lane&, over, message, at to, at from, std::span<const runtime::shard_range>,
                  std::size_t runtime::shard_range::* kept);

/// Sums of f32 whose members send their parts in bf16: each part is rounded, and each sum of two. What is
/// added is f32 again.
/// Shapes: as all_reduce, and for each range as reduce_scatter.
/// Errors: failure (70) where the lane has no place to round in.
void all_reduce_in_bf16(const lane&, over, message, at data, std::size_t count);
void scatter_sums_in_bf16(const lane&, over, message, at to, at from, std::span<const runtime::shard_range>,
                          std::size_t runtime::shard_range::* kept);

/// A generated program for this target: tables, and per pipeline coordinate its training and forward steps.
/// `train` is null where the program has forwards alone.
struct program {
  const description& about;
  void (*const* train)(rank&);
  void (*const* evaluate)(rank&);
};

/// For all ranks (rank i on device i), or for the one that `placement` names: allocate the arena, make the
/// communicators, start a thread, try both step functions out on small random numbers, and capture them.
/// Nothing is created after this: every step is one graph launch per rank, the first included.
/// Errors: failure (1) where there are fewer devices than ranks, or the program's type is f64; failure (70)
///         naming the rank and action that could not be run.
std::unique_ptr<engine> install(const program&, const placement& = {});

}  // namespace rankc::runtime::cuda
