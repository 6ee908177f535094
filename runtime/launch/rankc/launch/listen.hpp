// SPDX-License-Identifier: Apache-2.0
// The addresses on which rank 0 listens: those by which the other ranks reach it, and no others.
#pragma once
#include <rankc/launch/socket.hpp>

#include <string>
#include <vector>

namespace rankc::runtime {

struct listening {
  std::vector<socket_handle> sockets;  // one per address, all at one port
  bool everywhere = false;             // whether they listen at all addresses of this machine
};

/// Listen at the addresses of `host` that this machine has. If it has no such address, listen at the address
/// of the interface that reaches `host`. With `for_other_machines`, loopback addresses count only where
/// `host` is localhost or a loopback address itself; a name that has only loopback addresses here makes the
/// sockets listen everywhere. Port 0: any. An unknown name is resolved again until the deadline.
/// Errors: failure (75) where the port is taken, or where the machine has no such address.
listening listen_at(const std::string& host, int port, bool for_other_machines, deadline,
                    const on_failed_try& = {});

/// Listen at any port of 127.0.0.1.
socket_handle listen_on_loopback();

/// Take over a listening socket, and make it non-blocking.
socket_handle adopt_listener(int fd);
int port_of(const socket_handle& listener);

/// Whether a name is an address of the loopback interface, or localhost.
bool is_loopback(const std::string& host);

}  // namespace rankc::runtime
