// SPDX-License-Identifier: Apache-2.0
// Memory that the program's own launcher shares with the ranks it has started: where each of them is, and how
// those have ended that have. It has no name, and goes with the last process.
#pragma once
#include <rankc/launch/socket.hpp>
#include <rankc/runtime/progress.hpp>

#include <memory>
#include <optional>
#include <string>

namespace rankc::runtime {

class board {
 public:
  /// Errors: failure (75) where this machine gives no such memory.
  explicit board(int world);
  /// That of a parent process, which has it at this descriptor.
  board(int world, int descriptor);
  ~board();
  board(const board&) = delete;

  int descriptor() const { return memory_.fd(); }
  progress_words& words(int rank) { return slots_[rank].words; }
  void begin(int rank, int pid) { slots_[rank].pid.store(pid); }
  /// How a rank's process has ended, as waitpid says.
  void end(int rank, int status) { slots_[rank].ended.store(status + 1); }

  bool has_ended(int rank) const { return slots_[rank].ended.load() != 0; }
  /// "rank 3 (node1, process 1234) was killed by signal 9 (Killed) in step 12 at 1B3, op 57"; empty where it
  /// has not ended, or ended because of another.
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

/// All that have ended of themselves, in one text, once that rank has, or none where that is not known soon.
/// Units: milliseconds.
std::string wait_for_end(const board&, int rank, int patience);

}  // namespace rankc::runtime
