// SPDX-License-Identifier: Apache-2.0
#include <rankc/launch/listen.hpp>

#include "addresses.hpp"

#include <rankc/runtime/failure.hpp>

#include <fcntl.h>
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

namespace rankc::runtime {
namespace {

struct own_address {
  sockaddr_storage address{};
  socklen_t size = 0;

  own_address(const sockaddr* from, socklen_t bytes) : size(bytes) { std::memcpy(&address, from, bytes); }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
  in_port_t& port() {
    return address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                                         : reinterpret_cast<sockaddr_in&>(address).sin_port;
  }
  std::string text() const { return text_of(get(), size); }
  bool is_unspecified() const { return text() == "0.0.0.0" || text() == "::"; }
};

std::vector<own_address> addresses_in(const address_list& list) {
  std::vector<own_address> all;
  for (const addrinfo* a = list.first.get(); a != nullptr; a = a->ai_next) {
    const own_address next(a->ai_addr, a->ai_addrlen);
    const bool is_known = std::any_of(all.begin(), all.end(),
                                      [&](const own_address& known) { return known.text() == next.text(); });
    if (!is_known) all.push_back(next);
  }
  return all;
}

/// The local address from which this machine sends to the targets.
std::vector<own_address> sources_towards(const std::vector<own_address>& targets) {
  std::vector<own_address> found;
  for (const own_address& to : targets) {
    const socket_handle s = open_socket(to.address.ss_family, SOCK_DGRAM);
    sockaddr_storage from{};
    socklen_t size = sizeof from;
    if (s && connect(s.fd(), to.get(), to.size) == 0 &&
        getsockname(s.fd(), reinterpret_cast<sockaddr*>(&from), &size) == 0 && found.empty())
      found.emplace_back(reinterpret_cast<sockaddr*>(&from), size);
  }
  return found;
}

/// Sockets that listen at one port, and why the last attempt failed.
class listeners {
 public:
  listeners(std::string host, int port) : host_(std::move(host)), port_(port) {}

  void add(own_address at, bool for_both_families = false) {
    at.port() = htons(static_cast<in_port_t>(port_));
    socket_handle s = open_socket(at.address.ss_family);
    const int yes = 1, no = 0;
    setsockopt(s.fd(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (for_both_families) setsockopt(s.fd(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
    const bool listens = s && bind(s.fd(), at.get(), at.size) == 0 && listen(s.fd(), 1024) == 0;
    if (!listens && errno == EADDRINUSE)
      throw failure(75,
                    "RC5335: port {} is taken by another program of this machine; set MASTER_PORT to the "
                    "same free port on all ranks (ss -ltnp shows which program has it)",
                    port_);
    if (!listens) {
      error_ = std::strerror(errno);
      return;
    }
    port_ = port_of(s);
    sockets_.push_back(std::move(s));
  }

  /// Listen on IPv6 together with IPv4, or on IPv4 alone if the machine does not have IPv6.
  void add_everywhere() {
    sockaddr_in6 any6{};
    any6.sin6_family = AF_INET6;
    add({reinterpret_cast<const sockaddr*>(&any6), sizeof any6}, true);
    sockaddr_in any{};
    any.sin_family = AF_INET;
    if (sockets_.empty()) add({reinterpret_cast<const sockaddr*>(&any), sizeof any});
  }

  bool empty() const { return sockets_.empty(); }

  std::vector<socket_handle> take() {
    if (empty()) throw failure(75, "RC5336: cannot listen at port {} of {}: {}", port_, host_, error_);
    return std::move(sockets_);
  }

 private:
  const std::string host_;
  int port_;
  std::vector<socket_handle> sockets_;
  std::string error_;
};

address_list resolve_until(const std::string& host, int port, deadline until, const on_failed_try& failed) {
  for (;;) {
    address_list list = resolve(host, port);
    if (list.error.empty()) return list;
    if (std::chrono::steady_clock::now() >= until)
      throw failure(75, "RC5336: cannot listen at port {} of {}: {}", port, host, list.error);
    if (failed) failed(list.error);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
}

}  // namespace

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

listening listen_at(const std::string& host, int port, bool for_other_machines, deadline until,
                    const on_failed_try& failed) {
  const std::vector<own_address> all = addresses_in(resolve_until(host, port, until, failed));
  const bool skips_loopback = for_other_machines && !is_loopback(host);
  listeners found(host, port);
  bool has_skipped = false;
  for (const own_address& a : all) {
    const bool skipped = skips_loopback && is_loopback(a.text());
    has_skipped = has_skipped || skipped;
    if (!skipped && !a.is_unspecified()) found.add(a);
  }
  const bool everywhere = found.empty() && has_skipped;
  if (everywhere) found.add_everywhere();
  if (found.empty())
    for (const own_address& source : sources_towards(all)) found.add(source);
  return {found.take(), everywhere};
}

socket_handle listen_on_loopback() {
  listening there = listen_at("127.0.0.1", 0, false, {});
  return std::move(there.sockets.front());
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
  return ntohs(own_address(reinterpret_cast<sockaddr*>(&address), size).port());
}

}  // namespace rankc::runtime
