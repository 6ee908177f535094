// SPDX-License-Identifier: Apache-2.0
#include <rankc/launch/socket.hpp>

#include <rankc/launch/limits.hpp>
#include <rankc/runtime/failure.hpp>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

namespace rankc::runtime {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

struct address_list {
  std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> first{nullptr, freeaddrinfo};
  std::string error;
};

address_list resolve(const std::string& host, int port) {
  addrinfo wanted{};
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  address_list list;
  const int status = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &wanted, &found);
  if (status != 0) list.error = gai_strerror(status);
  else list.first.reset(found);
  return list;
}

std::string text_of(const sockaddr* address, socklen_t size) {
  char text[NI_MAXHOST];
  if (getnameinfo(address, size, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0) return "?";
  const std::string found = text;
  return found.starts_with("::ffff:") ? found.substr(7) : found;  // IPv4 that has come to a socket of both
}

int wait_for(int fd, short events, deadline until) {
  pollfd one{fd, events, 0};
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - clock::now()).count();
  return poll(&one, 1, static_cast<int>(std::clamp<long>(left, 0, 3'600'000)));
}

socket_handle open_socket(int family) {
  return socket_handle(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

/// Listening, or the error.
int listen_on(socket_handle& s, const sockaddr* address, socklen_t size) {
  const int yes = 1;
  setsockopt(s.fd(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  return bind(s.fd(), address, size) == 0 && listen(s.fd(), 1024) == 0 ? 0 : errno;
}

/// At every address of this machine: IPv6 with IPv4, or IPv4 where there is no IPv6.
int listen_everywhere(socket_handle& s, int port) {
  if ((s = open_socket(AF_INET6))) {
    const int no = 0;
    setsockopt(s.fd(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
    sockaddr_in6 any{};
    any.sin6_family = AF_INET6;
    any.sin6_port = htons(static_cast<std::uint16_t>(port));
    const int error = listen_on(s, reinterpret_cast<sockaddr*>(&any), sizeof any);
    if (error == 0 || error == EADDRINUSE) return error;
  }
  s = open_socket(AF_INET);
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_port = htons(static_cast<std::uint16_t>(port));
  return listen_on(s, reinterpret_cast<sockaddr*>(&any), sizeof any);
}

int listen_at_first(socket_handle& s, const std::string& host, int port) {
  const address_list list = resolve(host, port);
  int error = EADDRNOTAVAIL;
  for (const addrinfo* a = list.first.get(); a != nullptr && error != 0; a = a->ai_next) {
    s = open_socket(a->ai_family);
    error = s ? listen_on(s, a->ai_addr, a->ai_addrlen) : errno;
    if (error == EADDRINUSE) break;
  }
  return error;
}

/// Where nobody listens, a client of the same machine may be given the port itself, and TCP then connects it
/// with itself.
bool has_met_itself(int fd) {
  sockaddr_storage here{}, there{};
  socklen_t size = sizeof here;
  getsockname(fd, reinterpret_cast<sockaddr*>(&here), &size);
  size = sizeof there;
  getpeername(fd, reinterpret_cast<sockaddr*>(&there), &size);
  return std::memcmp(&here, &there, sizeof here) == 0;
}

/// Connected, or the error.
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

std::string address_by(int (*ask)(int, sockaddr*, socklen_t*), int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (ask(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return "?";
  return text_of(reinterpret_cast<sockaddr*>(&address), size);
}

/// Small messages go at once.
void send_at_once(int fd) {
  const int yes = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

}  // namespace

socket_handle::~socket_handle() {
  if (fd_ >= 0) close(fd_);
}

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

socket_handle listen_at(const std::string& host, int port) {
  socket_handle s;
  const int error = is_loopback(host) ? listen_at_first(s, host, port) : listen_everywhere(s, port);
  if (error == EADDRINUSE)
    throw failure(75,
                  "RC5335: port {} is taken by another program of this machine; set MASTER_PORT to the same "
                  "free port on "
                  "all ranks (ss -ltnp shows which program has it)",
                  port);
  if (error != 0)
    throw failure(75, "RC5336: cannot listen at port {} of {}: {}", port, host, std::strerror(error));
  return s;
}

socket_handle adopt_listener(int fd) {
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
  fcntl(fd, F_SETFD, FD_CLOEXEC);
  return socket_handle(fd);
}

int port_of(const socket_handle& listener) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  getsockname(listener.fd(), reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&address)->sin6_port
                                             : reinterpret_cast<sockaddr_in*>(&address)->sin_port);
}

socket_handle connect_to(const std::string& host, int port, deadline until) {
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

received receive_into(const socket_handle& s, std::string& bytes) {
  char buffer[16 * 1024];
  bool any = false;
  for (;;) {
    const ssize_t n = recv(s.fd(), buffer, sizeof buffer, 0);
    if (n > 0) {
      bytes.append(buffer, static_cast<std::size_t>(n));
      any = true;
    } else if (n < 0 && errno == EINTR) {
      continue;
    } else if (any) {
      return received::something;  // an end is seen again at the next call
    } else {
      return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK) ? received::nothing_yet : received::end;
    }
  }
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
