// SPDX-License-Identifier: Apache-2.0
// Memory that the program's own launcher shares with the ranks that it starts: the state of each rank, and
// how it ended. The memory has no name, and is freed with the last process.
#pragma once
#include <rankc/launch/socket.hpp>
#include <rankc/runtime/progress.hpp>

#include <memory>
#include <optional>
#include <string>

namespace rankc::runtime {

class board {
 public:
  /// Errors: failure (75) if this machine provides no such memory.
  explicit board(int world);
  /// Map a parent's board from this descriptor.
  board(int world, int descriptor);
  ~board();
  board(const board&) = delete;

  int descriptor() const { return memory_.fd(); }
  progress_words& words(int rank) { return slots_[rank].words; }
  void begin(int rank, int pid) { slots_[rank].pid.store(pid); }
  /// Record how a rank's process has ended, as waitpid reports it.
  void end(int rank, int status) { slots_[rank].ended.store(status + 1); }

  bool has_ended(int rank) const { return slots_[rank].ended.load() != 0; }
  /// "rank 3 (node1, process 1234) was killed by signal 9 (Killed) in step 12 at 1B3, op 57"; empty while it
  /// runs, or if it ended because of another rank.
  std::string end_of(int rank) const;
  int world() const { return world_; }

 private:
  struct alignas(64) slot {
    progress_words words;
    std::atomic<int> pid{0}, ended{0};
  };
  void map();

  const int world_;
  socket_handle memory_;
  slot* slots_ = nullptr;
};

/// Waits until the process of `rank` has ended, for `patience` at most. Returns end_of() of `rank`, followed
/// by that of every other rank; empty if end_of(rank) is empty.
/// Units: milliseconds.
std::string wait_for_end(const board&, int rank, int patience);

}  // namespace rankc::runtime
