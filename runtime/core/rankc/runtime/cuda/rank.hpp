// SPDX-License-Identifier: Apache-2.0
// One rank of a program on a GPU: the context into which generated code enqueues. The interface is the host's
// (host/rank.hpp), so the text is the same for both targets. Here a lane is a stream. Every call enqueues
// work and returns at once, so a whole step can become one CUDA graph.
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
#include <functional>
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

/// The numbers are at a fixed address in device memory, so learning rate and step number change without a new
/// capture.
using hyperparameters = update_factors<float>;

struct linear_plans;     // cuBLASLt plans by shape (linear_plans.hpp)
struct product_machine;  // the machine on which algorithms were timed (product_choices.hpp)
class product_choices;   // the GEMM algorithms of all ranks of a process
struct attention_plans;  // cuDNN plans by shape (attention_cudnn.cpp)
struct peer_edge;        // a pipeline edge by copy engines (peer_edges.hpp)
struct peer_group;       // ranks whose GPUs map each other's memory (peer_groups.hpp)
class tracer;            // the times of a step (trace.hpp)
class marks;             // the progress of its lanes (marks.hpp)
class injected;          // an injected fault (injected.hpp)

struct rank;

/// A communicator of a lane, or the pipeline edge that replaces it.
struct lane_link {
  runtime::over over;
  int communicator;  // index in the description
  ncclComm_t nccl = nullptr;
  ncclRedOp_t scaled_sum{};            // bf16 sum, each term multiplied by one (communicate.cpp)
  int place = 0;                       // the rank's number in the communicator; in a pair, 0 sends to 1
  peer_edge* edge = nullptr;           // null where NCCL carries the messages
  const peer_group* mapped = nullptr;  // null: NCCL carries everything
};

/// A lane: a stream on which kernels, messages and collectives run.
struct lane {
  rank* of = nullptr;
  int index = 0;  // in the rank's layout
  cudaStream_t stream = nullptr;
  std::vector<lane_link> links = {};
  // Each lane that computes has its own, because its kernels run one after the other:
  std::byte* workspace = nullptr;  // device scratch
  std::size_t workspace_bytes = 0;
  linear_plans* plans = nullptr;
  attention_plans* attention_graphs = nullptr;
  // Lanes over tp:
  lane* copies = nullptr;  // the lane of copy-engine transfers that overlap this one
  // Lanes that send gradients in bf16:
  bf16* rounded = nullptr;        // device memory of rounded_bytes
  cudaEvent_t reached = nullptr;  // recorded for lanes that follow this one

  operator rank&() const { return *of; }
  bool computes() const { return workspace != nullptr; }
  const char* name() const;
  int index_in(over axis) const;  // this rank's coordinate
  template <class T>
  T* at(runtime::at offset) const;
};

/// Context of one rank. `context` (context.hpp) owns the objects behind the pointers.
struct rank {
  static constexpr bool is_on_host = false;
  const description* about = nullptr;
  const rank_row* row = nullptr;
  const layout* where = nullptr;
  int index = 0;
  std::byte* arena = nullptr;  // device memory
  std::vector<lane> all_lanes;
  std::vector<cudaEvent_t> events;
  ncclComm_t world = nullptr;  // all ranks; set only if each rank is a process
  cublasLtHandle_t blas = nullptr;
  const product_machine* machine = nullptr;
  product_choices* choices = nullptr;
  const hyperparameters* input = nullptr;  // device memory; of the current step
  const char* action = "";                 // the action under way, for error texts
  std::int64_t steps_done = 0;             // -1: install is trying the step out
  tracer* trace = nullptr;                 // set while a step with timed actions is captured
  tracer* calls = nullptr;                 // set while a step with timed calls runs
  call_recorder* recorder = nullptr;       // set while calls are compared with the proof and not carried out
  marks* place = nullptr;                  // null: progress is not reported
  injected* fault = nullptr;
  bool evaluates = false;             // the work being enqueued is an evaluation
  bool alone = false;                 // warm-up without the other ranks: nothing is sent or received
  volatile unsigned* stop = nullptr;  // pinned; not 0 after a rank has failed: nobody waits any longer

  rank() = default;
  rank(const rank&) = delete;  // its lanes refer to it
  rank& operator=(const rank&) = delete;

  template <class T>
  T* at(runtime::at offset) const {
    return reinterpret_cast<T*>(arena + offset.byte);
  }
  /// The lane's link for a communicator of the description; null if there is none.
  lane_link* find_link(int communicator) {
    for (lane& on : all_lanes)
      for (lane_link& k : on.links)
        if (k.communicator == communicator) return &k;
    return nullptr;
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

inline const char* lane::name() const { return of->where->lanes[static_cast<std::size_t>(index)].name; }
inline int lane::index_in(over axis) const { return of->row->index_in(axis); }
template <class T>
T* lane::at(runtime::at offset) const {
  return of->at<T>(offset);
}

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
/// Errors: failure (70) if the lane has no communicator of that direction, or NCCL fails.
void send(const lane&, message, at data, std::size_t bytes);
void receive(const lane&, message, at data, std::size_t bytes);

/// Collectives over the ranks of the lane's communicator of a kind; T is float, double or bf16.
/// Shapes: all_reduce in place, `count` elements. all_gather: `to` is (group, count), this rank contributes
/// `from` (count). reduce_scatter: `from` is (group, count), `to` receives this rank's sum (count).
/// all_to_all: all three have the exchange's count * width elements; `to` holds the data to send until all
/// has been received.
/// Errors: failure (70) if the lane has no such communicator, or NCCL fails.
template <class T>
void all_reduce(const lane&, over, message, at data, std::size_t count, reduction = reduction::sum);
template <class T>
void all_gather(const lane&, over, message, at to, at from, std::size_t count);
template <class T>
void reduce_scatter(const lane&, over, message, at to, at from, std::size_t count);
template <class T>
void all_to_all(const lane&, over, message, at to, at scratch, at from, const runtime::head_exchange&);
/// Receives two tensors, of `count` and of `second_count` elements, from the previous member of the ring, or
/// the next, in one group of calls.
template <class T>
void shift(const lane&, over, message, at to, at second_to, at from, at second_from, std::size_t count,
           std::size_t second_count, ring_way);

/// Sends slots of tokens to the ranks that hold their experts, and back; and the offsets of the received
/// slots.
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

/// All-gathers each tensor from the shards that the ranks keep, or reduce-scatters each tensor. Progress
/// marks count it as one communication.
/// Shapes: for each range as all_gather, and as reduce_scatter.
template <class T>
void gather_shards(const lane&, over, message, at to, at from, std::span<const runtime::shard_range>);
template <class T>
void scatter_sums(const lane&, over, message, at to, at from, std::span<const runtime::shard_range>,
                  std::size_t runtime::shard_range::* kept);

/// Reductions of f32 whose members send bf16. Each part and each sum of two is rounded to bf16. The result is
/// f32.
/// Shapes: as all_reduce, and for each range as reduce_scatter.
/// Errors: failure (70) if the lane has no rounding buffer.
void all_reduce_in_bf16(const lane&, over, message, at data, std::size_t count);
void scatter_sums_in_bf16(const lane&, over, message, at to, at from, std::span<const runtime::shard_range>,
                          std::size_t runtime::shard_range::* kept);

/// A generated program for this target: tables, and the training and forward steps of each pipeline
/// coordinate. `train` is null if the program only evaluates.
struct program {
  const description& about;
  void (*const* train)(rank&);
  void (*const* evaluate)(rank&);
};

/// Installs all ranks (rank i on device i), or the rank that `placement` names: allocates the arena, creates
/// the communicators, starts a thread, runs both step functions once on small random numbers, and captures
/// them. Nothing is created later. Every step, also the first, is one graph launch per rank.
/// Errors: failure (1) if there are fewer devices than ranks, or the program's type is f64; failure (70) that
/// names the rank and the action that failed.
std::unique_ptr<engine> install(const program&, const placement& = {});

}  // namespace rankc::runtime::cuda
