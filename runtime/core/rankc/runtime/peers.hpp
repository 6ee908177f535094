// SPDX-License-Identifier: Apache-2.0
// The interface of an engine to the other processes of a program, each of which runs one rank. The control
// plane implements it (launch/).
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

  /// Sends and receives, and returns when all transfers are done. Every send is matched by the peer's receive
  /// at the same slot, with the same length. Two ranks use a slot once.
  /// Errors: failure (77) that names the rank that has timed out or ended; also after `stop`.
  virtual void move(std::uint64_t slot, std::span<const outgoing>, std::span<const incoming>) = 0;

  /// Stops all transfers: calls that are active, and all later calls, fail.
  virtual void stop() = 0;
};

/// The processes of a program, as one of them sees them.
class peers {
 public:
  virtual ~peers() = default;

  /// Connects this process with all others, for data. All ranks call it.
  /// Errors: failure (1) if this build has no transport.
  virtual std::unique_ptr<transport> connect() = 0;

  /// Reports to the others that this rank has failed, at once and before anything here is destroyed.
  virtual void tell_failure(int code, const std::string& text) = 0;

  /// Sets the function that another thread calls when another rank has failed; null: none.
  virtual void on_failure(std::function<void(const std::string& cause)>) = 0;

  /// The words in which this rank stores its progress.
  virtual progress_words& words() = 0;

  /// Sets the function that another thread calls to learn this rank's position; null: only the words are
  /// known.
  virtual void on_look(std::function<rank_position()>) = 0;
};

}  // namespace rankc::runtime
