// SPDX-License-Identifier: Apache-2.0
#include "addresses.hpp"

namespace rankc::runtime {

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
  return found.starts_with("::ffff:") ? found.substr(7) : found;  // IPv4, seen by a socket for IPv6
}

std::string address_by(int (*ask)(int, sockaddr*, socklen_t*), int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (ask(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return "?";
  return text_of(reinterpret_cast<sockaddr*>(&address), size);
}

socket_handle open_socket(int family, int type) {
  return socket_handle(::socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

}  // namespace rankc::runtime
