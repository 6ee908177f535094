// SPDX-License-Identifier: Apache-2.0
// Carries messages between the ranks of one process, with the semantics of NCCL. A communication starts when
// it is at the head of its lane on every rank of its communicator. On one communicator the ranks'
// communications are matched in the order in which they were posted. The fabric has no threads. The rank
// whose call makes a transfer possible moves the data, and blocked ranks help. Actions on a lane other than 0
// are also entries of that lane, and the lane's thread runs them. If the other ranks are other processes,
// each communicator of this rank has a thread that carries out its communications one after the other.
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

/// The position of a rank, for error texts: "rank 2, step 17, 1F0".
std::string place(int rank, std::int64_t step, const char* action);
std::string place(const rank&);

class fabric {
 public:
  /// The entries of a lane that may be in flight. A rank that posts more waits for the oldest.
  static constexpr std::size_t capacity = 1024;

  /// The fabric of all ranks, which are threads of this process. With `wires`, the fabric of rank `own`
  /// alone: the other ranks are processes, and `wires` moves data between them.
  explicit fabric(const description&, runtime::transport* wires = nullptr, int own = -1);
  /// The fabric of rank `own`, whose communication an application carries out.
  fabric(const description&, carriage&, int own);
  ~fabric();

  /// Ranks enter a step when the application calls them, so a rank may wait for another for a long time.
  void expect_ranks_one_by_one();

  /// Start and end a rank's part of a step. start_step comes before the rank's threads begin. `finish` waits
  /// until all entries that the rank has posted are complete. An entry that can never complete is an error
  /// that names it.
  void start_step(int rank);
  void finish(const rank&);

  void record(const rank&, int lane, event);
  void wait(const rank&, int lane, event);
  /// Makes a lane wait for the work that another lane holds.
  void follow(const rank&, int lane, int before);

  /// Appends a communication to its lane. On the lane of the calling thread it returns when the communication
  /// is complete.
  /// Errors: failure (77) in every rank after any rank has failed.
  void post(const rank&, op);

  /// Appends an action to a computing lane.
  /// Errors: failure (77) after any rank has failed.
  void post_action(const rank&, const op&);

  /// The part of a step of a thread other than lane 0's. It runs the actions of its lane when they reach the
  /// head, until lane 0's thread has finished.
  void run_actions(rank&);

  const char* name(int rank, int lane) const;

  /// The position of a rank of this process, in addition to its progress words.
  void look(int rank, rank_position& into);

  /// Stops all ranks. The first cause is kept.
  void fail(int code, std::string cause);
  std::optional<failure> cause() const {
    const std::lock_guard l(mutex_);
    return cause_;
  }

  /// Sets the list that receives later transfers; null: none. Call it between steps.
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
  /// A thread of a rank. The thread of lane 0 posts on all lanes. Any other thread posts collectives on its
  /// own lane only.
  struct worker {
    int rank = 0, lane = 0;
    std::vector<queue> queues;  // by lane
    std::vector<mark> events;
    std::condition_variable wake;
    bool blocked = false, ending = false;
    bool idle = false;  // while blocked: waits for `work`; if false, for entries of a lane:
    int awaited = 0;    // this lane, until it has completed `position` entries
    std::uint64_t position = 0;
    const op* work = nullptr;  // the action at the head of the lane, as lane 0's thread has filled it
    const char* action = "";
    std::int64_t step = 0;
    queue& on(int lane_index) { return queues[static_cast<std::size_t>(lane_index)]; }
    bool met() { return idle ? work != nullptr : on(awaited).completed >= position; }
  };
  struct meeting {
    std::span<const int> ranks;
    std::vector<op*> front, back;  // by member: its posted communications, oldest first
    bool moving = false;
    std::uint64_t done = 0;                                              // number of completed communications
    std::size_t chunk = 0, chunks = 0, next_chunk = 0, chunks_left = 0;  // chunk: in elements
    meeting* next_to_carry = nullptr;
    std::unique_ptr<carrier> by;    // set if the other members are other processes
    std::condition_variable given;  // tells its thread that an op is ready
    const op* carried = nullptr;
  };
  using lock = std::unique_lock<std::mutex>;

  worker& own(const rank&);  // the worker of the calling thread
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
  void end_carriers();
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
  std::deque<meeting> meetings_;  // their addresses stay valid
  runtime::transport* const wires_;
  carriage* carriage_ = nullptr;
  meeting* to_carry_ = nullptr;  // communications with chunks that no thread has taken yet
  int live_ = 0, blocked_ = 0;   // workers inside a step, and those of them that are blocked
  int away_ = 0;                 // ranks between steps that will still come
  bool come_back_ = false;       // ranks come to the steps one by one
  int under_way_ = 0;            // communications that carriers' threads or the application carry out
  bool ending_ = false;
  std::optional<failure> cause_;
  std::vector<transfer>* carried_ = nullptr;
  std::vector<std::thread> carriers_;
};

}  // namespace rankc::runtime::host
