// SPDX-License-Identifier: Apache-2.0
// A rank's connection to the coordinator: both ends prove that they have the job's key.
#pragma once
#include <rankc/launch/frame.hpp>
#include <rankc/launch/socket.hpp>

#include <string>

namespace rankc::runtime {

struct coordinator_link {
  socket_handle socket;
  frame_reader from_coordinator;
  frame_writer to_coordinator;
};

/// Connect to the coordinator. If it closes the connection, try again until the deadline: it does that with
/// ranks of other jobs, and, when there are too many clients, with the oldest unidentified ones.
/// Errors: failure (75) naming the address and the last reason.
coordinator_link join_coordinator(const std::string& host, int port, const mac_key& job, deadline,
                                  const on_failed_try& = {});

}  // namespace rankc::runtime
