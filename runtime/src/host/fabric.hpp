// SPDX-License-Identifier: Apache-2.0
// Carries messages between the ranks of one process, with the semantics of NCCL: a communication starts when
// it stands at the head of its stream on every rank of its communicator, and each rank's communications on
// one communicator meet in the order in which they were posted. The fabric has no threads: the rank whose
// call makes a transfer possible carries it, and ranks that wait meanwhile carry along. Actions on
// stream::beside are entries of that stream too, which a second thread of the rank runs.
#pragma once
#include "transfer.hpp"

#include <array>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace rankc::host {

/// Where a rank is, for error texts: "rank 2, step 17, 1F0".
std::string place(int rank, std::int64_t step, const char* action);
std::string place(const rank&);

class fabric {
 public:
  /// Entries of a stream that may be in flight; a rank that posts more waits for the oldest.
  static constexpr std::size_t capacity = 1024;

  explicit fabric(const description&);

  /// Before and after a rank's part of a step. `finish` waits until everything that the rank posted has
  /// completed; what never can is an orphan, and fails by name.
  void start_step();
  void finish(const rank&);

  void record(const rank&, stream, event);
  void wait(const rank&, stream, event);

  /// Append a communication to its stream; on stream::compute, return when it has completed.
  /// Errors: failure (77) in every rank once any rank has failed.
  void post(const rank&, op);

  /// Append an action to stream::beside.
  /// Errors: failure (70) where the rank has no second thread; (77) once any rank has failed.
  void post_beside(const rank&, const op&);

  /// A second thread's part of a step: run the actions of stream::beside as they come to its head, until the
  /// rank's own thread has finished.
  void run_beside(rank&);

  /// Stop all ranks; the first cause given is the one that is kept.
  void fail(int code, std::string cause);
  const std::optional<failure>& cause() const { return cause_; }

 private:
  struct queue {
    std::unique_ptr<op[]> ring = std::make_unique<op[]>(capacity);
    std::uint64_t posted = 0, completed = 0;
    op& head() { return ring[completed % capacity]; }
    bool empty() const { return posted == completed; }
  };
  struct mark {
    stream on = stream::compute;
    std::uint64_t position = 0;
    bool recorded = false;
  };
  /// A thread of a rank. The rank's own posts on all streams; the second one, which runs stream::beside, on its
  /// stream::compute alone.
  struct lane {
    int rank = 0;
    bool second = false;
    std::array<queue, n_streams> queues;
    std::vector<mark> events;
    std::condition_variable wake;
    bool blocked = false, ending = false;
    bool idle = false;                 // while blocked: until there is `work`; or else
    stream awaited = stream::compute;  // until this stream has completed `position` entries
    std::uint64_t position = 0;
    const op* work = nullptr;  // the second thread's: at the head of the rank's stream::beside
    const char* action = "";
    std::int64_t step = 0;
    queue& on(stream s) { return queues[static_cast<std::size_t>(s)]; }
    bool met() { return idle ? work != nullptr : on(awaited).completed >= position; }
  };
  struct meeting {
    std::span<const int> ranks;
    std::vector<op*> front, back;  // per member: its posted communications, oldest first
    bool moving = false;
    std::size_t chunk = 0, chunks = 0, next_chunk = 0, chunks_left = 0;  // chunk: elements
    meeting* next_to_carry = nullptr;
  };
  using lock = std::unique_lock<std::mutex>;

  int lane_of(const rank&) const;
  void append(lock&, const rank&, stream, const op&);
  void block_until(lock&, const rank&, stream, std::uint64_t position);
  void block(lock&, const rank&, lane&);
  void advance(int which);
  void hand_over(lane& from);
  void settle(int which);
  void try_start(meeting&);
  bool carry_one(lock&);
  bool carry_all(lock&);
  void complete(meeting&);
  void wake(lane&);
  void fail_locked(int code, std::string cause);
  void fail_if_stuck();
  void throw_if_failed() const;
  mark& find(const rank&, event);

  std::string mismatch(const op&, const op&) const;
  std::string standstill();
  std::string awaited_by(lane&);

  const description& about_;
  std::mutex mutex_;
  std::vector<int> second_;  // by rank: the lane of its second thread, -1 without one
  std::vector<lane> lanes_;  // those of the ranks' own threads, by rank, then the second ones
  std::vector<meeting> meetings_;
  meeting* to_carry_ = nullptr;  // meetings with chunks that no thread has taken
  int live_ = 0, blocked_ = 0;   // lanes inside a step, and those of them that wait
  std::optional<failure> cause_;
};

}  // namespace rankc::host
