// SPDX-License-Identifier: Apache-2.0
#include <rankc/launch/socket.hpp>

#include "addresses.hpp"

#include <rankc/launch/limits.hpp>
#include <rankc/runtime/failure.hpp>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

namespace rankc::runtime {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

int wait_for(int fd, short events, deadline until) {
  pollfd one{fd, events, 0};
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - clock::now()).count();
  return poll(&one, 1, static_cast<int>(std::clamp<long>(left, 0, 3'600'000)));
}

/// TCP connects a client with itself if nobody listens at the port that the client was given.
bool has_met_itself(int fd) {
  sockaddr_storage here{}, there{};
  socklen_t size = sizeof here;
  getsockname(fd, reinterpret_cast<sockaddr*>(&here), &size);
  size = sizeof there;
  getpeername(fd, reinterpret_cast<sockaddr*>(&there), &size);
  return std::memcmp(&here, &there, sizeof here) == 0;
}

/// Returns: 0 if connected, else the error.
int connect_once(socket_handle& s, const addrinfo& to, deadline until) {
  s = open_socket(to.ai_family);
  if (!s) return errno;
  if (connect(s.fd(), to.ai_addr, to.ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  if (wait_for(s.fd(), POLLOUT, until) <= 0) return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(s.fd(), SOL_SOCKET, SO_ERROR, &error, &size);
  return error == 0 && has_met_itself(s.fd()) ? ECONNREFUSED : error;
}

/// Send small messages at once.
void send_at_once(int fd) {
  const int yes = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

}  // namespace

socket_handle::~socket_handle() {
  if (fd_ >= 0) close(fd_);
}

socket_handle connect_to(const std::string& host, int port, deadline until, const on_failed_try& failed) {
  const auto start = clock::now();
  auto pause = 5ms;
  for (int tries = 1;; ++tries) {
    const address_list list = resolve(host, port);
    std::string tried, why = list.error;
    for (const addrinfo* a = list.first.get(); a != nullptr; a = a->ai_next) {
      socket_handle s;
      const int error = connect_once(s, *a, std::min(until, clock::now() + 5s));
      if (error == 0) {
        send_at_once(s.fd());
        return s;
      }
      tried += (tried.empty() ? "" : ", ") + text_of(a->ai_addr, a->ai_addrlen);
      why = std::strerror(error);
    }
    if (clock::now() + pause >= until)
      throw failure(
          75,
          "RC5337: rank 0 at {} port {} (addresses: {}) did not answer in {} s, {} tries: {}; check "
          "MASTER_ADDR, MASTER_PORT and the firewall, and that rank 0 has started",
          host, port, tried.empty() ? "none" : tried, whole_seconds(clock::now() - start), tries, why);
    if (failed) failed(why);
    std::this_thread::sleep_for(pause);
    pause = std::min<std::chrono::milliseconds>(pause * 2, 500ms);
  }
}

socket_handle accept_from(const socket_handle& listener) {
  socket_handle s(accept4(listener.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (s) send_at_once(s.fd());
  return s;
}

std::string local_address(const socket_handle& s) { return address_by(getsockname, s.fd()); }
std::string remote_address(const socket_handle& s) { return address_by(getpeername, s.fd()); }

void stop_waiting(const socket_handle& s) {
  if (s) shutdown(s.fd(), SHUT_RDWR);
}

bool wait_for_bytes(const socket_handle& s, deadline until) { return wait_for(s.fd(), POLLIN, until) > 0; }

received receive_into(const socket_handle& s, std::string& bytes, std::size_t most) {
  char buffer[16 * 1024];
  const std::size_t before = bytes.size();
  while (bytes.size() - before < most) {
    const std::size_t wanted = std::min(sizeof buffer, most - (bytes.size() - before));
    const ssize_t n = recv(s.fd(), buffer, wanted, 0);
    if (n > 0) {
      bytes.append(buffer, static_cast<std::size_t>(n));
    } else if (n < 0 && errno == EINTR) {
      continue;
    } else if (bytes.size() > before) {
      return received::something;  // the next call finds the end again
    } else {
      return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK) ? received::nothing_yet : received::end;
    }
  }
  return received::something;
}

long send_some(const socket_handle& s, std::string_view bytes) {
  for (;;) {
    const ssize_t n = send(s.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n >= 0) return n;
    if (errno == EINTR) continue;
    return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -1;
  }
}

bool send_all(const socket_handle& s, std::string_view bytes, deadline until) {
  while (!bytes.empty()) {
    const long n = send_some(s, bytes);
    if (n < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
    if (!bytes.empty() && n == 0 && wait_for(s.fd(), POLLOUT, until) <= 0) return false;
  }
  return true;
}

}  // namespace rankc::runtime
