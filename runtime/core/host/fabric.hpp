// SPDX-License-Identifier: Apache-2.0
// Carries messages between the ranks of one process, with the semantics of NCCL: a communication starts when
// it stands at the head of its lane on every rank of its communicator, and each rank's communications on
// one communicator meet in the order in which they were posted. The fabric has no threads: the rank whose
// call makes a transfer possible carries it, and ranks that wait meanwhile carry along. Actions on a lane
// other than 0 are entries of that lane too, which a thread of its own runs. Where the other ranks are other
// processes, each communicator of this rank has a thread, which carries its communications one after the
// other.
#pragma once
#include "carrier.hpp"
#include "transfer.hpp"

#include <rankc/runtime/host/transfers.hpp>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace rankc::runtime::host {

class carriage;  // embedded.hpp

/// Where a rank is, for error texts: "rank 2, step 17, 1F0".
std::string place(int rank, std::int64_t step, const char* action);
std::string place(const rank&);

class fabric {
 public:
  /// Entries of a lane that may be in flight; a rank that posts more waits for the oldest.
  static constexpr std::size_t capacity = 1024;

  /// Of all ranks, as threads; or of rank `own` alone, whose data `wires` carries to and from the other
  /// processes.
  explicit fabric(const description&, runtime::transport* wires = nullptr, int own = -1);
  /// Of rank `own`, whose communications an application carries.
  fabric(const description&, carriage&, int own);
  ~fabric();

  /// Ranks come to a step when they are called, so that one that waits for another may wait for long.
  void expect_ranks_one_by_one();

  /// Before and after a rank's part of a step, the first before its threads begin. `finish` waits until
  /// everything that the rank posted has completed; what never can is an orphan, and fails by name.
  void start_step(int rank);
  void finish(const rank&);

  void record(const rank&, int lane, event);
  void wait(const rank&, int lane, event);
  /// A lane waits for what another holds.
  void follow(const rank&, int lane, int before);

  /// Append a communication to its lane; on the lane that the thread computes on, return when it has
  /// completed.
  /// Errors: failure (77) in every rank once any rank has failed.
  void post(const rank&, op);

  /// Append an action to a lane that computes.
  /// Errors: failure (77) once any rank has failed.
  void post_action(const rank&, const op&);

  /// The part of a step of a thread other than lane 0's: run the actions of its lane as they come to the
  /// head, until lane 0's thread has finished.
  void run_actions(rank&);

  const char* name(int rank, int lane) const;

  /// What a rank of this process does, beside what its words say.
  void look(int rank, standing& into);

  /// Stop all ranks; the first cause given is the one that is kept.
  void fail(int code, std::string cause);
  std::optional<failure> cause() const {
    const std::lock_guard l(mutex_);
    return cause_;
  }

  /// Between steps: tell `into` what is carried from now on; null: nobody.
  void tell(std::vector<transfer>* into) { carried_ = into; }

 private:
  struct queue {
    std::unique_ptr<op[]> ring = std::make_unique<op[]>(capacity);
    std::uint64_t posted = 0, completed = 0;
    op& head() { return ring[completed % capacity]; }
    bool empty() const { return posted == completed; }
  };
  struct mark {
    int lane = 0;
    std::uint64_t position = 0;
    bool recorded = false;
  };
  /// A thread of a rank. That of lane 0 posts on all lanes; another puts collectives on its own alone.
  struct worker {
    int rank = 0, lane = 0;
    std::vector<queue> queues;  // by lane
    std::vector<mark> events;
    std::condition_variable wake;
    bool blocked = false, ending = false;
    bool idle = false;  // while blocked: until there is `work`; or else
    int awaited = 0;    // until this lane has completed `position` entries
    std::uint64_t position = 0;
    const op* work = nullptr;  // at the head of the lane, as lane 0's thread has filled it
    const char* action = "";
    std::int64_t step = 0;
    queue& on(int lane_index) { return queues[static_cast<std::size_t>(lane_index)]; }
    bool met() { return idle ? work != nullptr : on(awaited).completed >= position; }
  };
  struct meeting {
    std::span<const int> ranks;
    std::vector<op*> front, back;  // per member: its posted communications, oldest first
    bool moving = false;
    std::uint64_t done = 0;                                              // of its communications
    std::size_t chunk = 0, chunks = 0, next_chunk = 0, chunks_left = 0;  // chunk: elements
    meeting* next_to_carry = nullptr;
    std::unique_ptr<carrier> by;    // where the other members are other processes
    std::condition_variable given;  // to its thread: an op to carry
    const op* carried = nullptr;
  };
  using lock = std::unique_lock<std::mutex>;

  worker& own(const rank&);  // the worker of the thread
  worker& first(int rank) {
    return workers_[static_cast<std::size_t>(worker_of_[static_cast<std::size_t>(rank)][0])];
  }
  void append(lock&, const rank&, int lane, const op&);
  void block_until(lock&, const rank&, int lane, std::uint64_t position);
  void block(lock&, const rank&, worker&);
  void hold(const rank&, int lane, int awaited, std::uint64_t position);
  void advance(worker&);
  void hand_over(worker& from);
  void settle(worker&);
  void try_start(meeting&);
  bool carry_one(lock&);
  bool carry_all(lock&);
  void complete(meeting&);
  void connect(runtime::transport&, int own);
  void serve(meeting&);
  void give(meeting&);
  void hand_to_application(meeting&);
  bool look_after_carriage(lock&);
  bool is_at_head(const op& o) { return &workers_[static_cast<std::size_t>(o.worker)].on(o.on).head() == &o; }
  void wake(worker&);
  void fail_locked(int code, std::string cause);
  void fail_if_stuck();
  void throw_if_failed() const;
  mark& find(const rank&, event);

  std::string mismatch(const op&, const op&) const;
  std::string standstill();
  std::string awaited_by(worker&);

  const description& about_;
  mutable std::mutex mutex_;
  std::vector<std::vector<int>> worker_of_;  // by rank and lane; -1: the lane does not compute
  std::vector<worker> workers_;
  std::deque<meeting> meetings_;  // they do not move
  runtime::transport* const wires_;
  carriage* carriage_ = nullptr;
  meeting* to_carry_ = nullptr;  // meetings with chunks that no thread has taken
  int live_ = 0, blocked_ = 0;   // workers inside a step, and those of them that wait
  int away_ = 0;                 // ranks that are between steps and will come
  bool come_back_ = false;       // ranks do that
  int under_way_ = 0;            // communications that carriers' threads, or the application, carry
  bool ending_ = false;
  std::optional<failure> cause_;
  std::vector<transfer>* carried_ = nullptr;
  std::vector<std::thread> carriers_;
};

}  // namespace rankc::runtime::host
