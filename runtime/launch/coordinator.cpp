// SPDX-License-Identifier: Apache-2.0
#include <rankc/launch/coordinator.hpp>

#include "coordinator_server.hpp"

#include <rankc/launch/listen.hpp>
#include <rankc/runtime/failure.hpp>

#include <exception>

namespace rankc::runtime {

coordinator::coordinator(std::vector<socket_handle> listeners, int world, const mac_key& job, const limits& l,
                         std::function<void(const std::string&)> log, std::shared_ptr<board> ends)
    : port_(port_of(listeners.front())),
      address_(local_address(listeners.front())),
      server_(std::make_unique<server>(std::move(listeners), world, job, l, log, std::move(ends))),
      thread_([this, log = std::move(log)] { serve(log); }) {}

void coordinator::serve(const std::function<void(const std::string&)>& log) try {
  server_->serve(ending_);
} catch (const std::exception& e) {
  server_->close();
  try {
    log(say("RC6320: rank 0 can no longer coordinate the ranks, and all of them end: {}", e.what()));
  } catch (const std::exception&) {
  }  // the ranks report the lost connection
}

coordinator::~coordinator() {
  ending_ = true;
  server_->wake();
  thread_.join();
}

}  // namespace rankc::runtime
