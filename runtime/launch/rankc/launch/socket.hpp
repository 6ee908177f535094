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
  /// Give the file away, open.
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

/// Called after a try that has failed, before the next one.
using on_failed_try = std::function<void(const std::string& why)>;

/// Connect to the first address of a name that answers; try again until the deadline.
/// Errors: failure (75) naming host, port, addresses, the last error and how long was tried.
socket_handle connect_to(const std::string& host, int port, deadline, const on_failed_try& = {});

/// A connection that waits at a listener; empty, with errno, where none can be accepted.
socket_handle accept_from(const socket_handle& listener);

/// The addresses of a connection's two ends, without ports.
std::string local_address(const socket_handle&);
std::string remote_address(const socket_handle&);

/// End a connection, so that a thread that waits for it wakes.
void stop_waiting(const socket_handle&);

/// Wait for bytes, or the end, of a connection. Returns: false where the deadline comes.
bool wait_for_bytes(const socket_handle&, deadline);

enum class received { something, nothing_yet, end };
/// Append the bytes that have arrived, `most` of them at most. An error counts as the end.
received receive_into(const socket_handle&, std::string& bytes, std::size_t most);

/// Send as many bytes as the socket has room for. Returns: their number; -1 where the connection has ended.
long send_some(const socket_handle&, std::string_view bytes);
/// Send all bytes. Returns: false where the connection ends, or the deadline comes.
bool send_all(const socket_handle&, std::string_view bytes, deadline);

}  // namespace rankc::runtime
