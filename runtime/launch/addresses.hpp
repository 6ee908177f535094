// SPDX-License-Identifier: Apache-2.0
// Network addresses: resolves names, and prints addresses.
#pragma once
#include <rankc/launch/socket.hpp>

#include <netdb.h>
#include <sys/socket.h>

#include <memory>
#include <string>

namespace rankc::runtime {

struct address_list {
  std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> first{nullptr, freeaddrinfo};
  std::string error;  // empty if the name was resolved
};
address_list resolve(const std::string& host, int port);

/// The address as a number, without its port.
std::string text_of(const sockaddr*, socklen_t);

/// The text of an address that getsockname or getpeername gives.
std::string address_by(int (*ask)(int, sockaddr*, socklen_t*), int fd);

/// A socket that does not block.
socket_handle open_socket(int family, int type = SOCK_STREAM);

}  // namespace rankc::runtime
