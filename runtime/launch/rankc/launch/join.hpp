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

/// Connect to the coordinator; try again until the deadline where it closes the connection, as it does with
/// ranks of other jobs, and with the oldest clients of which it knows nothing when there are too many.
/// Errors: failure (75) naming the address and the last reason.
coordinator_link join_coordinator(const std::string& host, int port, const mac_key& job, deadline,
                                  const on_failed_try& = {});

}  // namespace rankc::runtime
