// SPDX-License-Identifier: Apache-2.0
// One rank of a program on a GPU: the context that generated code enqueues into. The interface is the host's
// (host/rank.hpp), so that the text for both targets reads alike; here every call puts work on one of the
// rank's streams and returns at once, which is what lets a whole step become one CUDA graph.
#pragma once
#include <rankc/runtime/engine.hpp>
#include <rankc/runtime/placement.hpp>
#include <rankc/runtime/program.hpp>

#include <cublasLt.h>
#include <cuda_bf16.h>
#include <cuda_runtime_api.h>
#include <nccl.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace rankc::cuda {

using namespace rankc::runtime;

/// The 16-bit type of generated bf16 code: activations and the working copy of the weights.
using bf16 = __nv_bfloat16;

/// What AdamW and clipping need of a step, worked out on the host in f64. It lies in device memory at a fixed
/// address, so that learning rate and step number change without a new capture.
struct hyperparameters {
  float clip;
  float keep;                      // 1 - lr * weight_decay: what decay leaves of a weight
  float beta1, new1, beta2, new2;  // new = 1 - beta
  float step_size;                 // lr / (1 - beta1^step)
  float second_scale;              // 1 / sqrt(1 - beta2^step)
  float eps;
};

struct linear_plans;     // cuBLASLt plans by shape (linear.cpp)
struct attention_plans;  // cuDNN plans by shape (attention_cudnn.cpp)
struct peer_edge;        // a pipeline edge by stores into the other GPU (peer_edges.hpp)
class tracer;            // the times of a step (trace.hpp)

/// Context of one rank. `context` (context.hpp) owns what is pointed to.
struct rank {
  const description* about = nullptr;
  const rank_row* row = nullptr;
  const layout* where = nullptr;
  int index = 0;
  std::byte* arena = nullptr;  // device memory
  cudaStream_t streams[n_streams]{};
  std::vector<cudaEvent_t> events;
  ncclComm_t communicators[n_roles]{};
  ncclRedOp_t scaled_sums[n_roles]{};  // bf16 sums, each term times one (communicate.cpp)
  ncclComm_t world = nullptr;          // all ranks; only where each has a process of its own
  int peers[n_roles]{};                // pipeline roles: the other rank, as that communicator numbers it
  const peer_edge* edges[n_roles]{};   // pipeline roles: null where NCCL carries the messages
  cublasLtHandle_t blas = nullptr;
  linear_plans* plans = nullptr;
  attention_plans* attention_graphs = nullptr;
  std::byte* workspace = nullptr;  // device scratch, used by kernels of one stream only, one after another
  std::size_t workspace_bytes = 0;
  attention_plans* attention_graphs_beside = nullptr;  // those of stream::beside: null where nothing runs there
  std::byte* workspace_beside = nullptr;
  const hyperparameters* input = nullptr;  // device memory; of the current step
  const char* action = "";                 // the action under way, for error texts
  std::int64_t steps_done = 0;             // -1: install is trying the step out
  tracer* trace = nullptr;                 // where a timed step is captured; null in all others
  bool alone = false;                      // warm-up without the other ranks: nothing is sent or received
  volatile unsigned* stop = nullptr;       // pinned; not 0 once a rank has failed: nobody waits any longer

  template <class T>
  T* at(runtime::at offset) const {
    return reinterpret_cast<T*>(arena + offset.byte);
  }
  cudaStream_t on(stream s) const { return streams[static_cast<int>(s)]; }
};

/// Name the action whose lines follow (`1F0`), for errors and traces.
void begin(rank&, const char* action);

/// Run an action on stream::beside, next to what stream::compute does: inside `work` the rank's stream::compute and
/// role::tp are stream::beside and role::tp_beside, and there is no other stream.
/// Errors: failure (70) where the rank's layout does not overlap.
void beside(rank&, const char* action, void (*work)(rank&));

/// Order across streams: `record` marks the end of what `s` holds so far, `wait` holds `s` until then.
void record(rank&, stream s, event);
void wait(rank&, stream s, event);

/// Point to point, on the stream and communicator of that direction.
/// Errors: failure (70) where the rank has no neighbour in that direction, or NCCL refuses.
void send(rank&, stream direction, message, at data, std::size_t bytes);
void receive(rank&, stream direction, message, at data, std::size_t bytes);

/// Collectives over the ranks of a role's communicator, on stream `s`; T is float, double or bf16.
/// Shapes: all_reduce in place, `count` elements. all_gather: `to` is (group, count), this rank contributes
///         `from` (count). reduce_scatter: `from` is (group, count), `to` receives this rank's sum (count).
/// Errors: failure (70) where the rank has no communicator for that role, or NCCL refuses.
template <class T>
void all_reduce(rank&, stream s, role, message, at data, std::size_t count, reduction = reduction::sum);
template <class T>
void all_gather(rank&, stream s, role, message, at to, at from, std::size_t count);
template <class T>
void reduce_scatter(rank&, stream s, role, message, at to, at from, std::size_t count);

/// A generated program for this target: tables, and per pipeline coordinate its training and forward steps. `train` is
/// null where the program has forwards alone.
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

}  // namespace rankc::cuda
