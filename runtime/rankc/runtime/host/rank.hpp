// SPDX-License-Identifier: Apache-2.0
// One rank of a program on the CPU: the context that generated code computes in. Computation runs on the
// rank's own thread, and where its layout overlaps on a second one too; communication streams are queues of
// the fabric, with the semantics of NCCL: rendezvous, in order per stream and per communicator, no tags.
#pragma once
#include <rankc/runtime/engine.hpp>
#include <rankc/runtime/program.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace rankc::host {

using namespace rankc::runtime;

class fabric;  // carries messages between the ranks of one process
class tracer;  // the times of a step

/// Context of one rank, as one of its threads sees it.
struct rank {
  const description* about = nullptr;
  const rank_row* row = nullptr;
  const layout* where = nullptr;
  int index = 0;
  std::byte* arena = nullptr;
  fabric* wires = nullptr;
  stream computes_on = stream::compute;  // stream::beside on the second thread
  step_input input{};          // of the current step
  const char* action = "";     // the action under way, for error texts
  tracer* trace = nullptr;     // of a timed step; null in all others
  std::int64_t steps_done = 0;

  template <class T>
  T* at(runtime::at offset) const { return reinterpret_cast<T*>(arena + offset.byte); }
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
void send(rank&, stream direction, message, at data, std::size_t bytes);
void receive(rank&, stream direction, message, at data, std::size_t bytes);

/// Collectives over the ranks of a role's communicator, on stream `s`. A role without one (-1) is refused.
/// On stream::compute they return when the result is there. Sums run in rank order: same bits every time.
/// Shapes: all_reduce in place, `count` elements. all_gather: `to` is (group, count), this rank contributes
///         `from` (count). reduce_scatter: `from` is (group, count), `to` receives this rank's sum (count).
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

/// Call first in main: makes the settings of the process that libraries read when they are loaded, and starts the
/// program again where one was missing.
void prepare(char** argv);

/// Allocate every arena, create the fabric and start the threads: one per rank, two where its layout overlaps.
/// Nothing is created after this.
std::unique_ptr<engine> install(const program&);

}  // namespace rankc::host
