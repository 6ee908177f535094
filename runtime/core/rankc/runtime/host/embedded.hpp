// SPDX-License-Identifier: Apache-2.0
// A rank of a CPU program inside another program. The calling thread computes. Ranks of the same process
// communicate through a `meeting_place`, ranks of other processes through the application's own `carriage`.
#pragma once
#include <rankc/runtime/embedded.hpp>
#include <rankc/runtime/host/rank.hpp>

#include <memory_resource>

namespace rankc::runtime::host {

/// The application's communication between processes. The rank's threads call it, one at a time.
class carriage {
 public:
  enum class kind { send, receive, all_reduce, all_gather, reduce_scatter, all_to_all, shift, shift_back };
  /// One communication of this rank. For all_to_all `count` is the size of one block; there is one block for
  /// each rank, in rank order. For a shift it is the size of both tensors together; a shift goes to the next
  /// rank in rank order, or back.
  /// Units: `count` in elements as in rank.hpp, in bytes for send and receive.
  struct call {
    carriage::kind kind;
    int communicator;  // index in the description; the communicator's ranks take part
    void* to;
    const void* from;
    void* second_to;  // for a shift
    const void* second_from;
    std::size_t count;
    dtype type;
    reduction how;                 // for an all_reduce
    const char* name;              // the same on all ranks
    std::size_t second_count = 0;  // for a shift: elements of the second tensor
  };
  enum class state { under_way, done, failed };

  virtual ~carriage() = default;

  /// Starts a call and returns without waiting for other ranks. A communicator has at most one call at a
  /// time.
  virtual void start(const call&) noexcept = 0;
  /// The state of the communicator's call. Does not wait.
  virtual state look(int communicator) noexcept = 0;
};

/// The fabric of ranks that one process embeds. Each rank receives a reference to it. It may be destroyed
/// before the ranks.
class meeting_place {
 public:
  friend status meet(const program&, meeting_place&) noexcept;
  const std::shared_ptr<fabric>& wires() const { return wires_; }

 private:
  std::shared_ptr<fabric> wires_;
};

/// Creates the fabric of a program.
/// Errors: 1 if the program's tables are wrong.
status meet(const program&, meeting_place&) noexcept;

/// The resources that the application gives a rank.
struct surroundings {
  int rank = 0;
  std::pmr::memory_resource* memory = nullptr;  // for the arena; null: new and delete
  const meeting_place* others = nullptr;        // if all ranks are in this process
  carriage* communications = nullptr;           // if they are not; a program of one rank needs neither
  /// Runs a function on another thread of the application and returns at once. Each step calls it once for
  /// each computing lane except the first. Most plans have only one.
  std::function<void(std::function<void()>)> beside = {};
  log_lines log = {};
};

/// Makes a rank and allocates its memory. Nothing is allocated later.
/// Errors: 1 if the surroundings lack a resource that the program needs.
status embed(const program&, const surroundings&, embedded&) noexcept;

}  // namespace rankc::runtime::host
