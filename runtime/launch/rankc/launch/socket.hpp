// SPDX-License-Identifier: Apache-2.0
// TCP sockets that never block: what waits, waits with a deadline.
#pragma once
#include <chrono>
#include <string>
#include <string_view>
#include <utility>

namespace rankc::runtime {

using deadline = std::chrono::steady_clock::time_point;

/// An open file, closed when it goes.
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

/// Listen at a port: where `host` is an address of this machine alone (127.0.0.1, ::1, localhost), there,
/// else at all addresses, IPv4 and IPv6. Port 0: any.
/// Errors: failure (75) where the port is taken.
socket_handle listen_at(const std::string& host, int port);
/// Make a socket that listens already one that does not block.
socket_handle adopt_listener(int fd);
int port_of(const socket_handle& listener);

/// Whether a name is of this machine alone.
bool is_loopback(const std::string& host);

/// Connect to the first address of a name that answers; try again until the deadline.
/// Errors: failure (75) naming host, port, addresses, the last error and how long was tried.
socket_handle connect_to(const std::string& host, int port, deadline);

/// A connection that waits at a listener; empty where none does.
socket_handle accept_from(const socket_handle& listener);

/// The addresses of a connection's two ends, without ports.
std::string local_address(const socket_handle&);
std::string remote_address(const socket_handle&);

/// End a connection, so that a thread that waits for it wakes.
void stop_waiting(const socket_handle&);

enum class received { something, nothing_yet, end };
/// Append what has come. An error is an end.
received receive_into(const socket_handle&, std::string& bytes);

/// Send all, or as much as there is room for; returns how much. -1: the connection has ended.
long send_some(const socket_handle&, std::string_view bytes);
/// Send all; false where the connection ends, or the deadline comes.
bool send_all(const socket_handle&, std::string_view bytes, deadline);

}  // namespace rankc::runtime
