// SPDX-License-Identifier: Apache-2.0
// What an engine needs of the other processes of a program, each of which runs one rank. The control plane
// implements it (launch/).
#pragma once
#include <rankc/runtime/progress.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

namespace rankc::runtime {

/// Moves data between the memories of processes. Several threads may use it at once, with different slots.
class transport {
 public:
  struct outgoing {
    int to;
    const std::byte* from;
    std::size_t bytes;
  };
  struct incoming {
    int from;
    std::byte* to;
    std::size_t bytes;
  };
  virtual ~transport() = default;

  /// Send and receive, and return when all of it is done. What is sent is met by what the other side receives
  /// at the same slot, which must be as long; a slot is used once between two ranks. Errors: failure (77)
  /// naming the rank that does not answer in time, or is gone; or after `stop`.
  virtual void move(std::uint64_t slot, std::span<const outgoing>, std::span<const incoming>) = 0;

  /// From now on nothing moves: calls that are under way, and all later ones, fail.
  virtual void stop() = 0;
};

/// The processes of a program, as one of them sees them.
class peers {
 public:
  virtual ~peers() = default;

  /// Connect this process with all others, for data; all ranks call it.
  /// Errors: failure (1) where this build has no transport.
  virtual std::unique_ptr<transport> connect() = 0;

  /// This rank has failed: the others are told at once, before anything here is taken apart.
  virtual void tell_failure(int code, const std::string& text) = 0;

  /// What to call, from another thread, once another rank has failed; null: nothing.
  virtual void on_failure(std::function<void(const std::string& cause)>) = 0;

  /// Where this rank stores where it is.
  virtual progress_words& words() = 0;

  /// What to ask, from another thread, for what this rank does; null: the words alone are known.
  virtual void on_look(std::function<standing()>) = 0;
};

}  // namespace rankc::runtime
