// SPDX-License-Identifier: Apache-2.0
#include <rankc/launch/coordinator.hpp>

#include "coordinator_server.hpp"

#include <rankc/launch/listen.hpp>

namespace rankc::runtime {

coordinator::coordinator(std::vector<socket_handle> listeners, int world, const mac_key& job, const limits& l,
                         std::function<void(const std::string&)> log, std::shared_ptr<board> ends)
    : port_(port_of(listeners.front())),
      address_(local_address(listeners.front())),
      server_(std::make_unique<server>(std::move(listeners), world, job, l, std::move(log), std::move(ends))),
      thread_([this] { server_->serve(ending_); }) {}

coordinator::~coordinator() {
  ending_ = true;
  server_->wake();
  thread_.join();
}

}  // namespace rankc::runtime
