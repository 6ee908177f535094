// SPDX-License-Identifier: Apache-2.0
// TCP sockets that never block. Every function that waits has a deadline.
#pragma once
#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace rankc::runtime {

using deadline = std::chrono::steady_clock::time_point;

/// An open file, which its destructor closes.
class socket_handle {
 public:
  socket_handle() = default;
  explicit socket_handle(int fd) : fd_(fd) {}
  socket_handle(socket_handle&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  socket_handle& operator=(socket_handle&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~socket_handle();
  int fd() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  /// Return the open file, which this handle no longer closes.
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

/// Called after a failed try, before the next one.
using on_failed_try = std::function<void(const std::string& why)>;

/// Connect to the first address of a name that answers; try again until the deadline.
/// Errors: failure (75) naming host, port, addresses, the last error, and how long it tried.
socket_handle connect_to(const std::string& host, int port, deadline, const on_failed_try& = {});

/// Accept a waiting connection; empty, with errno set, if there is none.
socket_handle accept_from(const socket_handle& listener);

/// The local address of a connection, and below the remote one, without ports.
std::string local_address(const socket_handle&);
std::string remote_address(const socket_handle&);

/// Shut a connection down, so that a thread that waits for it wakes.
void stop_waiting(const socket_handle&);

/// Wait for bytes on a connection, or for its end. Returns: false if the deadline passes.
bool wait_for_bytes(const socket_handle&, deadline);

enum class received { something, nothing_yet, end };
/// Append the bytes that have arrived, up to `most`. An error counts as the end.
received receive_into(const socket_handle&, std::string& bytes, std::size_t most);

/// Send as many bytes as the socket accepts. Returns: their number; -1 if the connection has ended.
long send_some(const socket_handle&, std::string_view bytes);
/// Send all bytes. Returns: false if the connection ends, or if the deadline passes.
bool send_all(const socket_handle&, std::string_view bytes, deadline);

}  // namespace rankc::runtime
