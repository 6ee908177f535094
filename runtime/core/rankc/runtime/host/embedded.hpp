// SPDX-License-Identifier: Apache-2.0
// A rank of a CPU program inside another program. The calling thread computes; ranks of the same process meet
// in a
// `meeting_place`, those of others through the application's own `carriage`.
#pragma once
#include <rankc/runtime/embedded.hpp>
#include <rankc/runtime/host/rank.hpp>

#include <memory_resource>

namespace rankc::runtime::host {

/// Communications between processes, as the application carries them. It is called by the rank's threads, one
/// at a time.
class carriage {
 public:
  enum class kind { send, receive, all_reduce, all_gather, reduce_scatter, all_to_all, shift, shift_back };
  /// Units: elements as rank.hpp has them; of all_to_all those of a block, one for each rank in their order;
  /// of a shift, to the next rank in their order or back, those of both tensors; bytes for send and receive.
  struct call {
    carriage::kind kind;
    int communicator;  // index in the description, whose ranks take part
    void* to;
    const void* from;
    void* second_to;  // of a shift
    const void* second_from;
    std::size_t count;
    dtype type;
    reduction how;                 // of an all_reduce
    const char* name;              // as all ranks have it
    std::size_t second_count = 0;  // of a shift: elements of the second tensor
  };
  enum class state { under_way, done, failed };

  virtual ~carriage() = default;

  /// Begin, and return without waiting for other ranks. A communicator has one call at a time.
  virtual void start(const call&) noexcept = 0;
  /// How far the communicator's call is; does not wait.
  virtual state look(int communicator) noexcept = 0;
};

/// Where the ranks of a program that one process embeds meet. It is given to each, and may go before they do.
class meeting_place {
 public:
  friend status meet(const program&, meeting_place&) noexcept;
  const std::shared_ptr<fabric>& wires() const { return wires_; }

 private:
  std::shared_ptr<fabric> wires_;
};

/// Errors: 1 where the program's tables are wrong.
status meet(const program&, meeting_place&) noexcept;

/// What the application gives a rank.
struct surroundings {
  int rank = 0;
  std::pmr::memory_resource* memory = nullptr;  // for the arena; null: new and delete
  const meeting_place* others = nullptr;        // where all ranks are of this process,
  carriage* communications = nullptr;           // or where they are not; a program of one rank needs neither
  /// Runs what it is given on another thread of the application, and returns at once. Called in each step for
  /// each lane but the first that computes; most plans have none.
  std::function<void(std::function<void()>)> beside = {};
  log_lines log = {};
};

/// Make a rank: its memory is taken, and nothing later. Errors: 1 where the surroundings lack what the
/// program needs.
status embed(const program&, const surroundings&, embedded&) noexcept;

}  // namespace rankc::runtime::host
